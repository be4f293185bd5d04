"""Progress bars show on a terminal, and only there."""

import os
import pty
import subprocess
import sys
import termios

# Long enough to be worth a bar, by the rule that bars appear after a second.
PROGRAM = """
import time
from lietransformer.progress import progress
with progress(total=4, description="working", unit=" steps") as bar:
    for _ in range(4):
        time.sleep(0.4)
        bar.update(1)
print("done")
"""


def test_on_a_terminal() -> None:
    screen, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=terminal, stderr=terminal, close_fds=True
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            block = os.read(screen, 1024)
        except OSError:  # what Linux says when the other end is closed
            break
        shown += block
    os.close(screen)
    assert process.wait() == 0
    assert b"working" in shown
    assert b"75%" in shown
    assert b"done" in shown


def test_silent_elsewhere() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert (result.stdout, result.stderr) == ("done\n", "")
