"""Time, memory and disk that generating the paper's datasets takes, beside their limits.

python -m benchmarks.datasets [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limit:
    """What a dataset may take on two cores; None where nothing is demanded."""

    seconds: float
    peak_gb: float | None
    disk_mb: float | None


@dataclass(frozen=True)
class Measurement:
    """What it took."""

    name: str
    seconds: float
    peak_gb: float
    disk_mb: float
    limit: Limit


LIMITS = {
    "constellations": Limit(seconds=10, peak_gb=None, disk_mb=None),
    "springs": Limit(seconds=120, peak_gb=2, disk_mb=500),
    "qm9": Limit(seconds=120, peak_gb=None, disk_mb=80),
}


def measure(name: str, limit: Limit, folder: Path) -> Measurement:
    """Run the command that a user would, from the start of Python to the complete file."""
    path = folder / f"{name}.h5"
    program = Path(sys.executable).with_name("lietransformer")
    command = [str(program), "data", name, "--out", str(path)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return Measurement(
        name=name,
        seconds=seconds,
        peak_gb=usage.ru_maxrss * 1024 / 1e9,
        disk_mb=path.stat().st_size / 1e6,
        limit=limit,
    )


def main() -> None:
    """Measure all datasets and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(name, limit, Path(folder)) for name, limit in LIMITS.items()]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'dataset':<15}{'seconds':>16}{'peak GB':>16}{'disk MB':>16}")
    for row in rows:
        cells = (
            f"{getattr(row, key):.1f}" + ("" if bound is None else f" of {bound:g}")
            for key, bound in asdict(row.limit).items()
        )
        print(f"{row.name:<15}" + "".join(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
