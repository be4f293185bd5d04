"""Small real runs at the protocol of small tiers, and an archive of them."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lietransformer.archive import publish
from lietransformer.experiments.constellations import dataset as constellations
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.springs import dataset as springs
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.layout import MANIFEST, Archive, sha256
from lietransformer.settings import validated
from lietransformer.sweep.plan import Plan
from lietransformer.sweep.reading import resolve
from lietransformer.training import result
from lietransformer.training.config import RunConfig
from lietransformer.training.loop import Run
from lietransformer.training.run_folder import RunFolder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TIER = """
published: only
constellations:
  data: {train: 16, validation: 8, test: 8}
  models: [SetTransformer]
  augmentations: [none]
  seeds: 1
  training: {epochs: 2, batch_size: 8}
  by_model:
    SetTransformer: {architecture: {width: 8, encoder_layers: 1, decoder_layers: 1}}
springs:
  data: {systems: 60, validation: 8, test: 8, long_chunk: 10}
  training: {epochs: 40, evaluations: 20, compile: false}
  by_model:
    LieTransformer-T2: {architecture: {width: 16, layers: 1}}
    LieConv-T2: {architecture: {width: 16, layers: 1}}
    Fully-connected (Hamiltonian): {architecture: {width: 16, layers: 1}}
  data_efficiency:
    models: [Fully-connected (Hamiltonian), LieConv-T2, LieTransformer-T2]
    n_train: [10]
    seeds: 2
  parameter_efficiency: {models: [], n_train: 10, seeds: 0}
  ablations: {kinds: [], n_train: 10, seeds: 0}
qm9: {data: {}, models: [], targets: [], augmentations: [none], seeds: 0}
compute:
  limits:
    constellations: {runtime: 30, memory: 2000}
    springs: {runtime: 30, memory: 2000}
    qm9: {runtime: 30, memory: 2000}
"""
FULLY_CONNECTED = "springs/Fully-connected (Hamiltonian)/n10"


@dataclass(frozen=True)
class Project:
    """A working folder with tiers and finished runs.

    Attributes:
        root: the folder; it is the working directory.
    """

    root: Path

    @property
    def results(self) -> Path:
        return Path("results")

    @property
    def archive(self) -> Archive:
        """Read anew each time."""
        return Archive(self.results / "published")

    def run(self, model: str, seed: int = 0) -> Path:
        """The folder of a run, by the beginning of its model's slug."""
        return next(self.results.glob(f"runs/*/{model}*/*/seed-{seed}"))

    def contents(self) -> dict[str, bytes]:
        """Every file of the archive and of the folder around it, except the runs."""
        files = (path for path in self.results.rglob("*") if path.is_file())
        kept = (path for path in files if path.relative_to(self.results).parts[0] != "runs")
        return {str(path): path.read_bytes() for path in kept if path.suffix != ".h5"}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiers and all runs of the workstation tier; do not write to it."""
    root = tmp_path_factory.mktemp("trained")
    tiers = root / "workflow" / "tiers"
    tiers.mkdir(parents=True)
    for name in ("workstation", "paper"):
        (tiers / f"{name}.yaml").write_text(TIER)
    with contextlib.chdir(root), pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "git_commit", lambda: COMMIT)
        plan = Plan(resolve({"tier": "workstation", "tracking": "none"}, publish.TIERS))
        springs.generate(
            validated(SpringsConfig, plan.datasets["springs"].settings),
            plan.datasets["springs"].path,
        )
        constellations.generate(
            validated(ConstellationsConfig, plan.datasets["constellations"].settings),
            plan.datasets["constellations"].path,
        )
        for configuration in plan.configurations:
            for seed in configuration.seeds:
                given = {"seed": seed, "device": "cpu", "threads": 1}
                config = validated(RunConfig, {**configuration.settings, **given})
                Run(config, RunFolder(configuration.run(seed))).execute()
    return root


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Iterator[Project]:
    """A copy to work in and to break; nothing is published yet."""
    root = tmp_path / "project"
    shutil.copytree(trained, root, copy_function=os.link)
    for path in root.rglob("*.json*"):  # these may be edited; the large files are shared
        text = path.read_bytes()
        path.unlink()
        path.write_bytes(text)
    with contextlib.chdir(root):
        yield Project(root)


@pytest.fixture(scope="session")
def archived(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of all runs; do not write to it."""
    path = tmp_path_factory.mktemp("archived") / "published"
    with contextlib.chdir(trained):
        publish.publish(Path("results"), path)
    return path


@pytest.fixture
def published(project: Project, archived: Path) -> Project:
    """The project with all runs published."""
    shutil.copytree(archived, project.archive.path)
    return project


def renew(archive: Archive, **changes: object) -> None:
    """Make the manifest one that knows the files as they are now."""
    files = {
        name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for name in archive.files
        if (path := archive.path / name).is_file()
    }
    edit(archive.path / MANIFEST, files=files, **changes)


def edit(file: Path, **changes: object) -> None:
    """Change values of a JSON file."""
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, **changes}))
