"""Add finished runs to the archive: all of them or, if one is refused or the disk is full, none."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lietransformer.archive import readme
from lietransformer.archive.checking import problems_of_content
from lietransformer.archive.compact import PathsWriter, write_compact_evaluation
from lietransformer.archive.comparison import have_same_numbers
from lietransformer.archive.measurements import PRICES, prices_name, require_measurement
from lietransformer.archive.runs import entry_of, require_complete
from lietransformer.archive.weights import export_headlines
from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.registry import PartName
from lietransformer.files import cannot_write, exclusive, read_json
from lietransformer.layout import (
    COPIED,
    FOLDER,
    FOLDERS,
    MANIFEST,
    README,
    RESTORE,
    Archive,
    damaged,
    empty_manifest,
    run_name,
    sha256,
)
from lietransformer.settings import validated
from lietransformer.sweep.jobs import Configuration
from lietransformer.sweep.plan import Plan
from lietransformer.sweep.reading import resolve
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder, write_json

TIERS = Path("workflow", "tiers")
_MEASURED = ("invariance", "complexity", "lifting")
_FIRST = ".first"  # folder of the stage with the manifest of an empty archive


@dataclass
class Publication:
    """What one call of `publish` does.

    Attributes:
        added: runs that are new in the archive, by name.
        known: runs that were there already.
        unfinished: folders of runs that have not ended.
        foreign: folders of runs that no tier with the paper's protocol plans.
        others: further files that are new: measurements, trajectories, weights.
        without_paths: runs, two for each pair, whose paths Figures 6 and 11 cannot draw.
    """

    added: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    without_paths: list[str] = field(default_factory=list)


def publish(results: Path, archive_path: Path | None = None) -> Publication:
    """Add the finished runs and measurements of a results folder to the archive.

    Args:
        results: the folder with runs/, data/ and the measurements.
        archive_path: the archive; results/published of the working directory by default.
    """
    if not results.is_dir():
        raise UserError(f"There is no folder {results}. Give a results folder, such as results.")
    path = archive_path or Path("results", FOLDER)
    new_folders = _missing_folders(path.parent)
    try:
        with exclusive(path.with_name(f".{path.name}.lock"), f"publishes to {path}"):
            archive = Archive(path)
            _require_archive(path)
            found = problems_of_content(archive)
            if found:
                raise damaged(found)
            _remove_left_overs(archive)
            with _staging(path) as stage:
                return _Publisher(results, archive, stage).run()
    except BaseException:
        for folder in reversed(new_folders):
            with suppress(OSError):
                folder.rmdir()
        raise


def _require_archive(path: Path) -> None:
    """Refuse a folder with other files than those of an archive, such as the results themselves."""
    found = {own.name for own in path.iterdir()} if path.is_dir() else set()
    others = found - {README, *FOLDERS}
    if MANIFEST not in found and others:
        raise UserError(
            f"{path} is not an archive of published runs: it has no {MANIFEST}, but other files "
            f"such as {min(others)}. Give an archive or a new folder."
        )


class _Publisher:
    """Checks and stages everything first; only then files move into the archive."""

    def __init__(self, results: Path, archive: Archive, stage: Path) -> None:
        self.results = results
        self.archive = archive
        self.stage = stage
        self.manifest: dict[str, Any] = json.loads(json.dumps(archive.manifest))
        self.done = Publication()
        self.obsolete: list[Path] = []  # files that the new manifest no longer has
        self.plans = {tier: _plan(tier) for tier in ("workstation", "paper")}

    def run(self) -> Publication:
        self._add_datasets()
        for folder, configuration in self._candidates():
            self._add_run(folder, configuration)
        self._add_measurements()
        writer = PathsWriter(
            self.results, self.archive.path, self.stage, self.manifest, self.done.without_paths
        )
        self.done.others += writer.write(self._folders_of("data_efficiency"))
        self.done.others += export_headlines(self.results, self.manifest, self.stage)
        self.manifest["sweep"] = _planned(self.plans["workstation"])
        self._move_into_place()
        return self.done

    def _folders_of(self, part: PartName) -> Iterator[str]:
        """The folders of a part's configurations, within the archive."""
        for plan in self.plans.values():
            for each in plan.configurations:
                if part in each.parts:
                    yield each.folder.relative_to(plan.results).as_posix()

    def _candidates(self) -> Iterator[tuple[RunFolder, Configuration]]:
        """The finished runs that a tier with the paper's protocol plans."""
        planned = {
            each.folder.relative_to(plan.results): each
            for plan in self.plans.values()
            for each in plan.configurations
        }
        for file in sorted((self.results / "runs").rglob("config.json")):
            folder = RunFolder(file.parent)
            name = folder.path.relative_to(self.results)
            if name.parent not in planned:
                self.done.foreign.append(name.as_posix())
            elif not folder.is_done:
                self.done.unfinished.append(name.as_posix())
            else:
                yield folder, planned[name.parent]

    def _add_run(self, folder: RunFolder, configuration: Configuration) -> None:
        name = folder.path.relative_to(self.results).as_posix()
        if name in self.manifest["runs"]:
            self._require_same(folder, name)
            self.done.known.append(name)
            return
        _require_protocol(folder, configuration)
        result = require_complete(folder)
        self._require_dataset(configuration, result.dataset_hash, folder)
        target = self.stage / name
        target.mkdir(parents=True)
        for file in COPIED:
            shutil.copyfile(folder.path / file, target / file)
        if folder.evaluation_file.exists():
            write_compact_evaluation(folder.evaluation_file, target / "evaluation.h5")
        self.manifest["runs"][name] = entry_of(folder, configuration.data.path.stem)
        self.done.added.append(name)

    def _require_same(self, folder: RunFolder, name: str) -> None:
        if not have_same_numbers(folder.path, self.archive.path / name):
            raise UserError(
                f"{folder.path} differs from the published run of the same settings. "
                "Published runs are never replaced. Move yours away, or compare them with "
                f"`lietransformer verify {_name_with_seed(self.archive.runs[name])}`."
            )

    def _add_datasets(self) -> None:
        """Content hashes of the sweep's datasets that are here."""
        for kind, data in self.plans["workstation"].datasets.items():
            file = self.results / "data" / data.path.name
            if data.path.stem not in self.manifest["datasets"] and file.exists():
                self.manifest["datasets"][data.path.stem] = {
                    "kind": kind,
                    "settings": data.settings,
                    "content_hash": DatasetFile(file, kind=kind).content_hash,
                }

    def _require_dataset(self, configuration: Configuration, found: str, folder: RunFolder) -> None:
        """All runs of a dataset were trained on the same bytes, those of its file if it is here."""
        name = configuration.data.path.stem
        known = self.manifest["datasets"].get(name)
        if known is None:
            raise UserError(
                f"{self.results / 'data' / name}.h5, which {folder.path} was trained on, is not "
                "there. Generate it, so that its hash can be compared."
            )
        expected = known["content_hash"]
        if found != expected:
            raise UserError(
                f"{folder.path} was trained on other data than {name} (content hash {found[:12]} "
                f"instead of {expected[:12]}). Train it again on the dataset of the sweep."
            )

    def _add_measurements(self) -> None:
        """Measurements at the settings of the plan; a published one stays."""
        for name in _MEASURED:
            stem = self.plans["workstation"].measurements[name].stem
            source = self.results / f"{stem}.json"
            if self.archive.measurement(stem) is None and source.exists():
                self._stage_measurement(source, f"{stem}.json")
        prices = self.results / f"{PRICES}.json"
        if prices.exists():
            name, old = prices_name(prices), self.archive.prices
            if old is None or old.name != name:
                self._stage_measurement(prices, name)
                if old is not None:
                    del self.manifest["files"][f"measurements/{old.name}"]
                    self.obsolete.append(old)

    def _stage_measurement(self, source: Path, name: str) -> None:
        require_measurement(source, name)
        target = self.stage / "measurements" / name
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
        self.done.others.append(f"measurements/{name}")

    def _move_into_place(self) -> None:
        """Rename staged files into the archive, manifest and README last. Undo it if that fails.

        Everything is written before the first rename, so that a full disk changes nothing.
        """
        archive = self.archive.path
        staged = sorted(path for path in self.stage.rglob("*") if path.is_file())
        for path in staged:
            entry = {"bytes": path.stat().st_size, "sha256": sha256(path)}
            self.manifest["files"][path.relative_to(self.stage).as_posix()] = entry
        new = self._without_those_there(staged)
        write_json(self.stage / MANIFEST, self.manifest)
        readme.write(Archive(self.stage))
        # First the files, which may not be lost when the manifest knows them.
        _sync(new)
        if not self.archive.exists:  # killed, a first publish leaves an archive without runs
            write_json(self.stage / _FIRST / MANIFEST, empty_manifest())
            new.insert(0, self.stage / _FIRST / MANIFEST)
        if self.manifest != self.archive.manifest:
            new.append(self.stage / MANIFEST)
        if not _have_equal_content(self.stage / README, archive / README):
            new.append(self.stage / README)
        _move(new, self.stage, archive)
        for path in self.obsolete:
            with suppress(OSError):  # it is no longer in the manifest; a check names it
                path.unlink()

    def _without_those_there(self, staged: list[Path]) -> list[Path]:
        """The staged files that the archive lacks; refuse to replace or to forget any file.

        Equal files were left by a publish that was interrupted.
        """
        archive, new = self.archive.path, []
        for path in staged:
            target = archive / path.relative_to(self.stage)
            if not os.path.lexists(target):
                new.append(path)
            elif not _have_equal_content(path, target):
                raise UserError(
                    f"{target} exists with other content and is not in the manifest. Published "
                    f"files are never replaced. {RESTORE} If an interrupted publish left the "
                    "file, remove it."
                )
        return new


def _move(files: Iterable[Path], stage: Path, archive: Path) -> None:
    """Rename files of the stage into the archive, in this order. Undo it if one fails."""
    backup = stage / ".replaced"
    undo: list[Callable[[], object]] = []
    try:
        for path in files:
            first = stage / _FIRST
            target = archive / path.relative_to(first if path.is_relative_to(first) else stage)
            for folder in _missing_folders(target.parent):
                folder.mkdir()
                undo.append(folder.rmdir)
            if target.exists():  # the manifest or the README
                backup.mkdir(exist_ok=True)
                shutil.copy2(target, backup)
                path.replace(target)
                undo.append(partial(os.replace, backup / target.name, target))
            else:
                path.replace(target)
                undo.append(target.unlink)
    except BaseException as error:
        for step in reversed(undo):
            with suppress(OSError):
                step()
        if isinstance(error, OSError):
            raise cannot_write(archive, error) from error
        raise


def _sync(files: Iterable[Path]) -> None:
    """Make files survive a power cut."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def _remove_left_overs(archive: Archive) -> None:
    """Remove what publishes that were killed have left: staged files, and files in the archive."""
    for left in archive.path.parent.glob(f".{archive.path.name}-*"):
        intended = (read_json(left / MANIFEST) or {}).get("files", {})
        for name, entry in intended.items():
            path = archive.path / name
            is_left = name not in archive.files and path.is_file()
            if is_left and sha256(path) == entry["sha256"]:
                path.unlink()
        shutil.rmtree(left, ignore_errors=True)


def _missing_folders(folder: Path) -> list[Path]:
    """The folder and those above it that do not exist, the outermost first."""
    return [own for own in (*reversed(folder.parents), folder) if not own.exists()]


def _have_equal_content(one: Path, other: Path) -> bool:
    return other.is_file() and sha256(one) == sha256(other)


@contextmanager
def _staging(archive: Path) -> Iterator[Path]:
    """A folder beside the archive, on the same file system; removed at the end."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{archive.name}-", dir=archive.parent))
    except OSError as error:
        raise cannot_write(archive, error) from error
    try:
        yield stage
    except OSError as error:
        raise cannot_write(archive, error) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _plan(tier: str) -> Plan:
    if not TIERS.is_dir():
        raise UserError(
            f"The tiers that define the protocol are not in {TIERS}. Run this in the project's "
            "folder."
        )
    return Plan(resolve({"tier": tier, "tracking": "none"}, TIERS))


def _planned(plan: Plan) -> dict[str, Any]:
    """What the workstation tier plans, with folders relative to the archive."""
    sweep = plan.manifest()
    runs = [
        {**run, "folder": run["folder"].removeprefix(f"{FOLDER}/"), "source": "published"}
        for run in sweep["runs"]
    ]
    measurements = {name: f"measurements/{plan.measurements[name].stem}.json" for name in _MEASURED}
    return {**sweep, "runs": runs, "measurements": measurements, "published": "only"}


def _require_protocol(folder: RunFolder, configuration: Configuration) -> None:
    """Refuse a run whose settings are not those of the protocol."""
    config = folder.config()
    given = {"seed": config.seed, "device": config.device, "threads": config.threads}
    expected = validated(RunConfig, {**configuration.settings, **given}).identity
    different = [name for name in expected if expected[name] != config.identity[name]]
    if different:
        raise UserError(
            f"{folder.path} was not trained at the paper's protocol: it differs in "
            f"{', '.join(different)}. Train it again with the settings of the sweep."
        )


def _name_with_seed(run: dict[str, Any]) -> str:
    return f"{run_name(run)}/seed-{run['seed']}"


def summary(done: Publication, archive: Archive) -> Iterable[str]:
    """What was published, for the terminal."""
    for name in (*done.added, *done.others):
        yield f"added {name}"
    yield (
        f"{len(done.added)} runs added, {len(done.known)} already published, "
        f"{len(done.unfinished)} not finished, {len(done.foreign)} not of the protocol"
    )
    if done.without_paths:
        names = " ".join(f'"{name}"' for name in done.without_paths)
        yield (
            "no predicted paths for Figures 6 and 11 of these pairs, which `lietransformer verify "
            f"{names}` trains again for the next publish"
        )
    yield f"{archive.path}: {len(Archive(archive.path).runs)} runs"
