"""The environments have the versions of constraints.txt, and all that is needed."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envs import pins

HARMLESS = ("README.md", "Dockerfile.dockerignore", "__init__.py")
CONTAINERS = (pins.FOLDER / "Dockerfile", pins.FOLDER / "apptainer.def")

each_environment = pytest.mark.parametrize("file", pins.ENVIRONMENTS, ids=lambda file: file.stem)


def pip_lines(file: Path) -> list[str]:
    dependencies = yaml.safe_load(file.read_text())["dependencies"]
    (by_pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return list(by_pip)


def pip_pins(file: Path) -> dict[str, str]:
    lines = [line for line in pip_lines(file) if not line.startswith("-")]
    return {canonicalize_name(line.partition("==")[0]): line for line in lines}


@each_environment
def test_every_version_is_that_of_the_constraints(file: Path) -> None:
    known = pins.constraints()
    for name, line in pip_pins(file).items():
        assert line == known[name]


@each_environment
def test_every_direct_dependency_is_there_in_a_version_that_it_allows(file: Path) -> None:
    there = pip_pins(file)
    for requirement in pins.direct_requirements():
        version = there[canonicalize_name(requirement.name)].partition("==")[2]
        assert requirement.specifier.contains(version)


@each_environment
def test_the_files_are_as_written_by_the_program(file: Path) -> None:
    text = file.read_text()
    assert pins.with_pins(text) == text


@each_environment
def test_no_package_is_left_to_chance(file: Path) -> None:
    assert pins.needed() == set(pip_pins(file))


@each_environment
def test_python_is_one_that_the_project_takes(file: Path) -> None:
    content = yaml.safe_load(file.read_text())
    (python,) = [
        entry
        for entry in content["dependencies"]
        if isinstance(entry, str) and entry.startswith("python")
    ]
    takes = tomllib.loads((pins.ROOT / "pyproject.toml").read_text())["project"]
    version = python.partition("=")[2]
    assert Requirement(f"python{takes['requires-python']}").specifier.contains(version)
    assert content["channels"] == ["conda-forge", "nodefaults"]


def test_the_environments_differ_in_where_torch_comes_from_alone() -> None:
    cpu, cuda = map(pip_lines, pins.ENVIRONMENTS)
    assert [line for line in cpu if line not in cuda] == [
        "--extra-index-url https://download.pytorch.org/whl/cpu"
    ]
    assert [line for line in cuda if line not in cpu] == []


@pytest.mark.parametrize("file", CONTAINERS, ids=lambda file: file.name)
def test_containers_install_from_the_constraints(file: Path) -> None:
    text = file.read_text()
    assert "--constraint constraints.txt" in text
    assert f"'.[{','.join(pins.EXTRAS)}]'" in text
    python = yaml.safe_load(pins.ENVIRONMENTS[0].read_text())["dependencies"][0]
    assert f"python:{python.partition('=')[2]}-slim" in text


def test_the_readme_names_every_file() -> None:
    text = (pins.FOLDER / "README.md").read_text()
    for file in pins.FOLDER.iterdir():
        if file.is_file() and file.name not in (
            "README.md",
            "Dockerfile.dockerignore",
            "__init__.py",
        ):
            assert f"`{file.name}`" in text
