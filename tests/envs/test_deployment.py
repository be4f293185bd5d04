"""Snakemake makes an environment that has this package (with a stand-in for conda)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from envs import pins
from tests.envs import conda

RULES = """
rule version:
    output: "where.txt"
    conda: "../../envs/{name}.yaml"
    shell:
        "lietransformer --version && "
        "python -c 'import lietransformer as l; print(l.__file__)' > {{output}}"
"""

each_environment = pytest.mark.parametrize("name", ["cpu", "cuda"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, with a workflow of one rule."""
    folder = tmp_path / "project"
    shutil.copytree(
        pins.ROOT / "lietransformer",
        folder / "lietransformer",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copytree(pins.FOLDER, folder / "envs")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(pins.ROOT / name, folder)
    (folder / "workflow" / "rules").mkdir(parents=True)
    (folder / "Snakefile").write_text('include: "workflow/rules/version.smk"\n')
    return folder


def snakemake(
    project: Path, *arguments: str, path: str = "", target: str = "version"
) -> subprocess.CompletedProcess[str]:
    """Run the workflow."""
    # Not the tests' own environment, which has the package already.
    variables = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(project.parent)}
    variables |= {k: v for k, v in os.environ.items() if k in ("LANG", "TMPDIR")}
    return subprocess.run(
        [sys.executable, "-m", "snakemake", target, "--cores", "1", *arguments],
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@each_environment
def test_the_environment_has_the_package_of_the_project(project: Path, name: str) -> None:
    (project / "workflow/rules/version.smk").write_text(RULES.format(name=name))
    packages = Path(np.__file__).parent.parent
    conda.install(project.parent / "conda", str(packages))
    path = str(project.parent / "conda" / "bin")
    done = snakemake(project, "--software-deployment-method", "conda", path=path)
    assert done.returncode == 0, done.stdout + done.stderr
    where = Path((project / "where.txt").read_text().strip())
    assert where == project / "lietransformer" / "__init__.py"


@pytest.mark.slow
@pytest.mark.parametrize(("device", "name"), [("cpu", "cpu"), ("cuda", "cuda"), ("auto", "cuda")])
def test_the_workflow_of_the_project_has_one_environment(
    project: Path, device: str, name: str
) -> None:
    shutil.rmtree(project / "workflow")
    for folder in ("workflow", "profiles"):
        shutil.copytree(pins.ROOT / folder, project / folder)
    for file in ("Snakefile", "config.yaml"):
        shutil.copy(pins.ROOT / file, project)
    conda.install(project.parent / "conda", str(Path(np.__file__).parent.parent))
    path = str(project.parent / "conda" / "bin")
    sweep = ("--config", "tier=smoke", f"compute={{device: {device}}}")
    only = ("--conda-create-envs-only", "--software-deployment-method", "conda")
    done = snakemake(project, *only, *sweep, path=path, target="all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("Creating conda environment") == 1
    (script,) = project.glob(".snakemake/conda/*/bin/lietransformer")
    environment = script.parents[1]
    assert environment.with_suffix(".yaml").read_text() == (
        (pins.FOLDER / f"{name}.yaml").read_text()
    )


@each_environment
def test_a_dry_run_needs_nothing(project: Path, name: str) -> None:
    (project / "workflow/rules/version.smk").write_text(RULES.format(name=name))
    done = snakemake(project, "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr


@each_environment
def test_elsewhere_it_says_what_is_missing(tmp_path: Path, name: str) -> None:
    script = pins.FOLDER / f"{name}.post-deploy.sh"
    done = subprocess.run(
        ["bash", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
    assert "LIETRANSFORMER_SOURCE" in done.stderr


def test_both_environments_are_finished_in_the_same_way() -> None:
    texts = {(pins.FOLDER / f"{name}.post-deploy.sh").read_text() for name in ("cpu", "cuda")}
    assert len(texts) == 1
