"""`lietransformer data`, as a user calls it: what it prints, refuses, and survives."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import pytest

from lietransformer.cli import main
from lietransformer.data.reader import DatasetFile
from lietransformer.files import complete_or_absent

COMMAND = Path(sys.executable).with_name("lietransformer")
SMALL = {
    "constellations": ["train=30", "validation=5", "test=6"],
    "springs": ["systems=40", "test=10", "validation=5", "states=50", "long_chunk=20"],
    "qm9": ["limit=200", "train=150"],
}


def arguments(kind: str, path: Path, *more: str) -> list[str]:
    settings = [part for setting in (*SMALL[kind], *more) for part in ("--set", setting)]
    return ["data", kind, "--out", str(path), *settings]


@pytest.mark.parametrize("kind", SMALL)
def test_generate_inspect_and_plot(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{kind}.h5"
    assert main(arguments(kind, path)) == 0
    written = capsys.readouterr()
    assert re.fullmatch(rf"{re.escape(str(path))}: \d+\.\d MB in \d+\.\d s\n", written.out)
    assert written.err == ""  # not a terminal, so no progress bar

    for ending, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        picture = tmp_path / f"page.{ending}"
        assert main(["data", "inspect", str(path), "--plot", str(picture)]) == 0
        assert picture.read_bytes().startswith(magic)
    shown = capsys.readouterr().out
    assert f"{kind}, " in shown
    assert DatasetFile(path).content_hash in shown
    for setting in SMALL[kind]:
        key, value = setting.split("=")
        assert re.search(rf"{key} +{value}\n", shown)
    for name in DatasetFile(path).names:
        assert name in shown


def test_inspect_says_what_is_in_each_dataset(
    constellations_file: Path,
    springs_file: Path,
    qm9_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path, facts in {
        constellations_file: ["400 examples", "test_SE2", "rotated by any angle", "pentagon"],
        springs_file: [
            "120 of 6 particles in 2 dimensions",
            "500 states from t = 0 to 5",
            "n ≤ 70",
            "energy drift",
        ],
        qm9_file: [
            "130,831 of 3 to 29 (mean 18.03) atoms",
            "train 100,000, validation 17,748, test 13,083",
            "-76,107.16 ± 10,323.03 meV",
        ],
    }.items():
        assert main(["data", "inspect", str(path)]) == 0
        shown = capsys.readouterr().out
        for fact in [*facts, "complete and unaltered", "seed 0"]:
            assert fact in shown


def test_settings_come_from_a_file_and_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "springs.yaml"
    config.write_text("systems: 40\ntest: 10\nstates: 50\nlong_chunk: 10\nseed: 7\n")
    out = tmp_path / "springs.h5"
    assert main(["data", "springs", "--config", str(config), "--out", str(out)]) == 0
    assert DatasetFile(out).seed == 7
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["data", "springs", "--settings"])
    assert stop.value.code == 0
    assert "systems: 100000\n    number of systems" in capsys.readouterr().out


def fails(*command: str) -> str:
    """What a failing command says: one message, and no traceback."""
    result = subprocess.run([COMMAND, *command], capture_output=True, text=True, check=False)
    assert result.returncode == 1, result
    assert result.stdout == ""
    (message,) = result.stderr.splitlines()
    assert message.startswith("lietransformer: ")
    return message


def test_mistakes_get_one_message_and_exit_code_1(tmp_path: Path, springs_file: Path) -> None:
    out = str(tmp_path / "out.h5")
    assert "systems: input should" in fails("data", "springs", "--set", "systems=x", "--out", out)
    assert "No such file" in fails("data", "springs", "--config", "none.yaml", "--out", out)
    assert "No such file" in fails("data", "qm9", "--set", "source=none.tar", "--out", out)
    assert "no such file" in fails("data", "inspect", out)
    assert "file name too long" in fails("data", "inspect", "x" * 300)
    assert "ending in .png" in fails("data", "inspect", str(springs_file), "--plot", "page.jpg")
    assert "it is a folder" in fails("data", "springs", "--out", str(tmp_path), "--force")
    assert list(tmp_path.iterdir()) == []


# Runs the command with a limit on the size of files, in bytes, as its first argument.
LIMITED = """
import resource, sys
from lietransformer.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""


def fails_to_write(size: int, *command: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(size), *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_picture_that_cannot_be_written(tmp_path: Path, springs_file: Path) -> None:
    command = ["data", "inspect", str(springs_file), "--plot", str(tmp_path / "page.png")]
    assert "file too large" in fails_to_write(10_000, *command)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_seen_enough(springs_file: Path) -> None:
    for command in (f"inspect {springs_file}", "springs --settings"):
        result = subprocess.run(
            f"'{COMMAND}' data {command} | true; exit ${{PIPESTATUS[0]}}",
            shell=True,
            executable="/bin/bash",
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.stderr == ""
        assert result.returncode in (0, 141)


def test_damaged_files_get_one_message_and_exit_code_1(tmp_path: Path, springs_file: Path) -> None:
    path = Path(shutil.copy(springs_file, tmp_path / "copy.h5"))
    with h5py.File(path) as file:
        offset = file["chunks/states"].id.get_offset()
    with open(path, "r+b") as raw:
        raw.seek(offset)
        raw.write(b"\x00\x01")
    assert "chunks/states does not match its hash" in fails("data", "inspect", str(path))
    with h5py.File(path, "r+") as file:
        file.attrs["schema_version"] = 0
    assert "of an older release" in fails("data", "inspect", str(path))
    os.truncate(path, path.stat().st_size // 2)
    assert "cut off" in fails("data", "inspect", str(path))
    path.write_text("hello")
    assert "another format" in fails("data", "inspect", str(path))


def test_an_existing_file_is_kept_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "springs.h5"
    assert main(arguments("springs", path)) == 0
    before = path.read_bytes()
    assert main(arguments("springs", path, "seed=1")) == 1
    assert "replace it with --force" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main([*arguments("springs", path, "seed=1"), "--force"]) == 0
    assert DatasetFile(path).seed == 1


# Full disks. A limit on file size fails in the same place as a full disk, for every user; a
# real small file system needs the right to mount one in a name space of its own.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "kilobytes"),
    [("springs", 0), ("springs", 1), ("springs", 8), ("constellations", 30), ("qm9", 30)],
)
def test_a_write_that_fails(tmp_path: Path, kind: str, kilobytes: int) -> None:
    said = fails_to_write(kilobytes * 1024, *arguments(kind, tmp_path / "x.h5"))
    assert re.fullmatch(
        r"lietransformer: cannot write .*x\.h5: file too large\. Free.*\n",
        said,
    )
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(tmp_path: Path) -> None:
    script = (
        f"mount -t tmpfs -o size=64k tmpfs {tmp_path} && "
        f"{COMMAND} {' '.join(arguments('springs', tmp_path / 'x.h5', 'systems=2000'))};"
        f"code=$?; ls -A {tmp_path}; exit $code"
    )
    separate = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*separate, "true"], capture_output=True, check=False).returncode:
        return  # this system lets nobody mount one; the tests above fail in the same place
    result = subprocess.run(
        [*separate, "sh", "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1, result
    assert result.stdout == ""  # nothing is left in the folder
    assert "no space left on device. Free some space" in result.stderr
    assert "Traceback" not in result.stderr


# Kills.


def start(path: Path) -> "subprocess.Popen[bytes]":
    """Generate a dataset that takes some seconds, in a process to be killed."""
    large = ["data", "springs", "--out", str(path), "--set", "systems=12000", "--set", "test=10"]
    # Started in the background, tests ignore SIGINT, and so would their children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen([COMMAND, *large], stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)


def wait_until_written(path: Path, size: int) -> None:
    part = path.with_name(path.name + ".part")
    for _ in range(6000):
        if part.exists() and part.stat().st_size >= size:
            return
        time.sleep(0.01)
    raise AssertionError(f"{part} never had {size} bytes")


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1_000, 3_000_000])
def test_a_kill_leaves_no_file_and_the_next_call_completes_it(tmp_path: Path, size: int) -> None:
    path = tmp_path / "springs.h5"
    process = start(path)
    wait_until_written(path, size)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert process.stderr is not None
    process.stderr.close()
    assert not path.exists()
    assert main(arguments("springs", path)) == 0
    undisturbed = tmp_path / "other.h5"
    assert main(arguments("springs", undisturbed)) == 0
    assert path.read_bytes() == undisturbed.read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([path, undisturbed])


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_polite_end_leaves_nothing_at_all(tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "springs.h5"
    process = start(path)
    wait_until_written(path, 1_000)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == code
    assert said == b""
    assert list(tmp_path.iterdir()) == []


def test_two_processes_do_not_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "springs.h5"
    with complete_or_absent(path) as part:
        part.write_text("ours")
        assert "another process writes springs.h5.part now" in fails(*arguments("springs", path))
    assert path.read_text() == "ours"
