"""Python and the installed packages, beside those that the project asks for."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lietransformer import __version__
from lietransformer.doctor.findings import Finding, counted, some

PINS = Path(__file__).parents[2] / "constraints.txt"  # in a checkout; an installation has none
_PACKAGE = "lietransformer"


def check(pins: Path = PINS) -> Iterator[Finding]:
    """What is installed, what is missing or too old, and what differs from the tested versions."""
    yield Finding("ok", f"Python {platform.python_version()}, {_PACKAGE} {__version__}")
    needed = list(_requirements())
    wrong = [text for requirement in needed if (text := _shortcoming(requirement)) is not None]
    if wrong:
        yield Finding(
            "problem",
            f"packages that do not fit: {'; '.join(wrong)}",
            "run `make setup`, or `pip install` them",
            tuple(wrong),
        )
    if pins.is_file():
        yield _beside(pins)
    else:
        names = [requirement.name for requirement in needed]
        listed = [f"{name} {found}" for name in names if (found := _installed(name)) is not None]
        yield Finding("ok", f"installed: {', '.join(listed)}")


def _requirements() -> Iterator[Requirement]:
    """What the package cannot do without."""
    try:
        texts = requires(_PACKAGE) or []
    except PackageNotFoundError:  # its source is on Python's path, but it was never installed
        return
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def _shortcoming(requirement: Requirement) -> str | None:
    found = _installed(requirement.name)
    if found is None:
        return f"{requirement} is not installed"
    if not requirement.specifier.contains(found, prereleases=True):
        return f"{requirement} is needed, {found} installed"
    return None


def _beside(pins: Path) -> Finding:
    """Of the packages that are installed, those whose version was not tested."""
    lines = [line.strip() for line in pins.read_text(encoding="utf-8").splitlines()]
    tested = dict(line.split("==", 1) for line in lines if "==" in line and line[0] != "#")
    found = {name: _installed(name) for name in tested}
    # 2.13.0+cpu and 2.13.0+cu130 are builds of the same version.
    others = [
        f"{canonicalize_name(name)} {here} (tested: {tested[name]})"
        for name, here in found.items()
        if here is not None and here.partition("+")[0] != tested[name]
    ]
    if not others:
        number = sum(here is not None for here in found.values())
        return Finding("ok", f"{counted(number, 'package')} of the versions in {pins.name}")
    return Finding(
        "warning",
        f"{counted(len(others), 'package')} of other versions than in {pins.name}: {some(others)}",
        "run `make setup` if anything does not work, or if numbers have to be comparable",
        tuple(others),
    )


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
