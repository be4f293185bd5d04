"""A stand-in for conda, as far as Snakemake calls it.

`env create` makes a Python environment in which the packages of the one that runs the tests can be
imported, as if they had been installed, except those that are installed there in editable form:
the package of this project.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

_ACTIVATE = 'export PATH="$1/bin:$PATH" CONDA_PREFIX="$1"\n'
_FIND_PIP = "import pip, pathlib; print(pathlib.Path(pip.__file__).parent.parent)"


def install(folder: Path, packages: str) -> None:
    """Put it into a folder: `bin/conda` and `bin/activate`."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "activate").write_text(_ACTIVATE)
    program = folder / "bin" / "conda"
    command = f'exec "{sys.executable}" "{__file__}" "{folder}" "{packages}" "$@"'
    program.write_text(f"#!/bin/sh\n{command}\n")
    program.chmod(0o755)


def main(folder: str, packages: str, *arguments: str) -> None:
    """Answer a call of Snakemake's."""
    match arguments:
        case ("info", "--json"):
            print(json.dumps({"conda_prefix": folder, "platform": "linux-64"}))
        case ("--version",):
            print("conda 25.1.0")
        case ("config", "--get", "channel_priority", "--json"):
            print(json.dumps({"get": {"channel_priority": "strict"}}))
        case ("env", "create", *options):
            _create(options, packages)
        case ("clean", *_):
            pass
        case _:
            sys.exit(f"conda was not expected to be called with {arguments}")


def _create(options: list[str], packages: str) -> None:
    prefix = Path(options[options.index("--prefix") + 1])
    assert Path(options[options.index("--file") + 1]).exists()
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", str(prefix)], check=True)
    answer = subprocess.run([base, "-c", _FIND_PIP], check=True, capture_output=True, text=True)
    (site_packages,) = prefix.glob("lib/python*/site-packages")
    paths = f"{packages}{os.linesep}{answer.stdout.strip()}{os.linesep}"
    (site_packages / "installed.pth").write_text(paths)


if __name__ == "__main__":
    main(*sys.argv[1:])
