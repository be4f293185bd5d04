"""Write the versions of constraints.txt into the conda environments: `python -m envs.pins`.

An environment file must name every version itself: Snakemake makes environments from a copy of
the file, beside which there is no constraints.txt, and makes a new one when the file changes.
"""

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
ENVIRONMENTS = (FOLDER / "cpu.yaml", FOLDER / "cuda.yaml")
# What the workflow needs; not what developers need.
EXTRAS = ("qm9", "specialists", "workflow")
_FIRST, _LAST = "# from constraints.txt:", "# to here"


def direct_requirements() -> list[Requirement]:
    """What pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [text for extra in EXTRAS for text in project["optional-dependencies"][extra]]
    return [Requirement(text) for text in (*project["dependencies"], *extras)]


def constraints() -> dict[str, str]:
    """The line `name==version` of each package in constraints.txt, by its canonical name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.strip() for line in lines if "==" in line and not line.startswith("#")]
    return {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}


def needed() -> set[str]:
    """The packages that are needed, directly or by others, as far as they are installed here."""
    waiting, seen = direct_requirements(), set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        for text in requires(requirement.name) or []:
            other = Requirement(text)
            extras = ("", *requirement.extras)
            if not other.marker or any(other.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(other)
    return {name for name, _ in seen}


def with_pins(text: str) -> str:
    """An environment file with the versions of constraints.txt."""
    pins = constraints()
    indent = " " * 6
    lines = "".join(f"{indent}- {pins[name]}\n" for name in sorted(needed()))
    block = re.compile(rf"(?<={_FIRST}\n).*?(?={indent}{_LAST}\n)", re.DOTALL)
    changed, blocks = block.subn(lines, text)
    assert blocks == 1, f"expected one block from {_FIRST!r} to {_LAST!r}"
    return changed


if __name__ == "__main__":
    for environment in ENVIRONMENTS:
        environment.write_text(with_pins(environment.read_text()))
