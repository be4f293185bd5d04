"""What a sweep makes: datasets, and runs in packs of seeds. Validated here, except the models.

The name of a run's folder holds a hash of everything that determines its numbers. So a changed
setting leads to another folder: old runs stay, what depends on the setting is made again, and
changing it back finds the old runs. Published runs are found by the same name.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

from lietransformer.errors import UserError
from lietransformer.experiments.plan import Ablation, Planned
from lietransformer.experiments.registry import MEASUREMENTS, PartName, TaskName, plan_of
from lietransformer.layout import FOLDER, Archive
from lietransformer.settings import validated
from lietransformer.sweep.config import SweepConfig
from lietransformer.sweep.jobs import Configuration, Dataset, Pack, as_sets, digest, slug
from lietransformer.tracking.address import NO_TRACKING, SQLITE, database_of, require_usable
from lietransformer.training.settings import RunSettings

_SOURCE = Path("config.yaml")
# Where a run is computed does not decide which run it is.
_NOT_OF_A_CONFIGURATION = ("seed", "data_seed", "sampling_seed", "device")
# Settings that only the model itself can check.
_OF_A_MODEL = {"architecture", "compile", "graphs"}


class Plan:
    """Everything that a sweep makes below its folder of results, or takes from the archive there.

    Args:
        config: what is swept.
        results: the folder; published runs are in its folder `published`.
        is_changed: whether that differs from what its tier says.
    """

    def __init__(
        self,
        config: SweepConfig,
        results: Path = Path("results"),
        *,
        is_changed: bool = False,
    ) -> None:
        self.config = config
        self.is_changed = is_changed
        self.results = results
        if config.tracking != NO_TRACKING:
            require_usable(config.tracking)
        self.archive = Archive(results / FOLDER)
        self._published = self._published_runs()
        self.measurements: dict[str, Path] = {
            name: self._measurement(name) for name in MEASUREMENTS
        }
        self.datasets: dict[TaskName, Dataset] = {
            task: self._dataset(task) for task in get_args(TaskName)
        }
        self._configurations: dict[Path, Configuration] = {}
        for task in get_args(TaskName):
            self._plan_experiment(task)

    @property
    def configurations(self) -> list[Configuration]:
        return list(self._configurations.values())

    @property
    def trained(self) -> list[Configuration]:
        """Configurations with at least one run to train here."""
        return [each for each in self.configurations if self._seeds_to_train(each)]

    @cached_property
    def packs(self) -> dict[Path, Pack]:
        """All training jobs, by the file that each makes."""
        packs = (pack for each in self.configurations for pack in self._packs_of(each))
        return {pack.summary: pack for pack in packs}

    def packs_for(self, *parts: PartName) -> list[Pack]:
        """The training jobs that some parts of the sweep need."""
        return [
            pack
            for pack in self.packs.values()
            if any(
                not wanted.isdisjoint(pack.seeds)
                for part, wanted in pack.configuration.parts.items()
                if part in parts
            )
        ]

    def has_published(self, *parts: PartName) -> bool:
        """Whether a run of some parts of the sweep is in the archive."""
        return any(
            seed in configuration.parts.get(part, ())
            for configuration, seed in self._runs(is_published=True)
            for part in parts
        )

    @property
    def left_out(self) -> int:
        """How many runs are neither published nor trained."""
        if self.config.published != "only":
            return 0
        return sum(not self._is_published(*run) for run in self._runs())

    @property
    def verifies(self) -> bool:
        """Whether published runs are trained again, to compare."""
        is_wanted = self.config.published != "ignore" and self.config.verification.seconds > 0
        return is_wanted and bool(self._published)

    @property
    def needed_datasets(self) -> list[Dataset]:
        """Those that runs are trained with. The verification compares the hashes of all."""
        tasks = {each.task for each in self.trained}
        return [data for task, data in self.datasets.items() if task in tasks or self.verifies]

    def measures(self, name: str) -> bool:
        """Whether a measurement is made here, and not taken from the archive."""
        return self.measurements[name].parent == self.results

    def _published_runs(self) -> set[str]:
        """Folders of the runs in the archive; where they are ignored, of those to compare with."""
        if self.config.published != "ignore":
            return set(self.archive.runs)
        try:
            return {name for name in self.archive.runs if not self.archive.problems(name)}
        except UserError:
            return set()

    def require_intact_archive(self) -> None:
        """Refuse to use published runs and measurements whose files are damaged."""
        if self.config.published != "ignore":
            used = (self._name(*run) for run in self._runs(is_published=True))
            for folder in (*used, "measurements", "trajectories"):
                self.archive.require_intact(folder)

    def require_valid_models(self) -> None:
        """Refuse settings that do not fit a model; torch is imported only if there are any."""
        if any(not _OF_A_MODEL.isdisjoint(each.settings) for each in self.configurations):
            resolve_name("lietransformer.sweep.models:require_valid_models")(self)

    def files_that_stand_for_nothing(self) -> list[Path]:
        """Stale sentinels: summaries of runs that are gone, and signs of a lost MLflow store."""
        summaries = [
            pack.summary
            for pack in self.packs.values()
            if pack.summary.exists() and not pack.is_done
        ]
        uri = self.config.tracking
        is_lost = uri.startswith(SQLITE) and not database_of(uri).exists()
        # Not the sign of the store itself: any writer makes it, and all training waits for it.
        signs = {*(self.results / "tracking").glob("*")} - {self.results / "tracking" / "store"}
        return [*summaries, *(sorted(signs) if is_lost else ())]

    def _measurement(self, name: str) -> Path:
        """The file that a measurement makes, or the published one."""
        settings = _checked(resolve_name(MEASUREMENTS[name]), getattr(self.config, name), name)
        stem = f"{name}-{digest(settings.model_dump(mode='json'))}"
        is_ignored = self.config.published == "ignore"
        published = None if is_ignored else self.archive.measurement(stem)
        return published or self.results / f"{stem}.json"

    def measurement_arguments(self, name: str) -> str:
        """The arguments of a measurement's command, quoted for a shell."""
        return as_sets(getattr(self.config, name))

    def manifest(self) -> dict[str, Any]:
        """What belongs to this sweep, for those who read the results: see `report.runs`."""
        # Without these, whose change would remake all tables with the same numbers.
        how = {"compute", "published", "verification"}
        # For comparison with those that are trained again.
        published = [self._entry(*run, is_used=True) for run in self._runs(is_published=True)]
        is_ignored = self.config.published == "ignore"
        return {
            "schema_version": 3,
            "tier": self.config.tier,
            "is_changed": self.is_changed,
            "published": self.config.published,
            "config": self.config.model_dump(mode="json", exclude=how),
            "runs": [
                self._entry(*run, is_used=not is_ignored and self._is_published(*run))
                for run in self._runs()
            ],
            **({"published_runs": published} if is_ignored else {}),
            "measurements": {
                name: path.relative_to(self.results).as_posix()
                for name, path in self.measurements.items()
            },
        }

    def _runs(self, *, is_published: bool = False) -> Iterator[tuple[Configuration, int]]:
        """All runs of the sweep, or those that are in the archive."""
        runs = ((each, seed) for each in self.configurations for seed in each.seeds)
        return (run for run in runs if not is_published or self._is_published(*run))

    def _entry(self, configuration: Configuration, seed: int, *, is_used: bool) -> dict[str, Any]:
        """A run in the manifest: the published one, if that is used, or the one of this machine."""
        name = self._name(configuration, seed)
        return {
            "folder": f"{FOLDER}/{name}" if is_used else name,
            "source": "published" if is_used else "local",
            "parts": [part for part, seeds in configuration.parts.items() if seed in seeds],
            **configuration.labels,
            "seed": seed,
        }

    def _name(self, configuration: Configuration, seed: int) -> str:
        """A run's folder within the results, which is also that within the archive."""
        return configuration.run(seed).relative_to(self.results).as_posix()

    def _is_published(self, configuration: Configuration, seed: int) -> bool:
        return self._name(configuration, seed) in self._published

    def _seeds_to_train(self, configuration: Configuration) -> list[int]:
        match self.config.published:
            case "only":
                return []
            case "ignore":
                return configuration.seeds
        return [s for s in configuration.seeds if not self._is_published(configuration, s)]

    # ---- checking and naming

    def _dataset(self, task: TaskName) -> Dataset:
        given = getattr(self.config, task).data
        settings = _checked(plan_of(task).Generator, given, f"{task}.data")
        content = settings.model_dump(mode="json")
        return Dataset(task, given, self.results / "data" / f"{task}-{digest(content)}.h5")

    def _plan_experiment(self, task: TaskName) -> None:
        sweep, known = getattr(self.config, task), plan_of(task).MODELS
        for name in (*sweep.models, *sweep.by_model):
            if name not in known:
                raise UserError(
                    f"models of {task} in config.yaml must be among {', '.join(known)}, got "
                    f"{name!r}. Fix its name."
                )
        for each in sweep.planned():
            if each.seeds:
                self._add(task, each)

    def _add(self, task: TaskName, planned: Planned) -> None:
        """Plan runs of a configuration; it may be planned already for another part."""
        compute, data = self.config.compute, self.datasets[task]
        known = {
            "task": task,
            **_without_nothing(planned.settings),
            "data": str(data.path),
            "precision": compute.precision,
        }
        # Validated as if the requested device were here: only the job's node has to have it.
        on = "cuda" if compute.device == "cuda" or compute.precision == "tf32" else "cpu"
        where = f"{planned.part}, {planned.settings['model']}"
        settings = {k: v for k, v in known.items() if k not in ("compile", "graphs")}
        settings |= {"device": on, "seed": planned.seeds[0], "threads": 1}
        run = _checked(RunSettings, settings, where)
        try:
            plan_of(task).require_examples(run, plan_of(task).Generator(**data.settings))
        except ValueError as error:
            raise UserError(
                f"in {_SOURCE}, {where}: {error}. Make the dataset larger, or n_train smaller."
            ) from error
        identity = {k: v for k, v in run.identity.items() if k not in _NOT_OF_A_CONFIGURATION}
        name = digest({**identity, "dataset": data.path.stem})
        folder = self._folder(run, planned.ablation, name)
        configuration = self._configurations.setdefault(
            folder, Configuration(task, known, folder, data, planned.ablation)
        )
        configuration.parts.setdefault(planned.part, set()).update(planned.seeds)

    def _folder(self, run: RunSettings, ablation: Ablation | None, name: str) -> Path:
        names = [run.target, run.augmentation if run.task != "springs" else None]
        names += [None if run.n_train is None else f"n{run.n_train}"]
        names += [f"draw{run.draw}" if run.draw else None, ablation, name]
        variant = "-".join(name for name in names if name)
        return self.results / "runs" / run.task / slug(run.model) / variant.replace("_", "-")

    def _packs_of(self, configuration: Configuration) -> Iterator[Pack]:
        """Seeds to train, in packs that stay as they are when more seeds are added."""
        size = self.config.compute.seeds_per_job
        by_pack: dict[int, list[int]] = {}
        for seed in self._seeds_to_train(configuration):
            by_pack.setdefault(seed // size, []).append(seed)
        return (Pack(configuration, tuple(seeds)) for seeds in by_pack.values())


def _without_nothing(settings: dict[str, Any]) -> dict[str, Any]:
    """Drop nulls of settings that do not apply to the task; other nulls have a meaning."""
    optional = ("n_train", "target")
    return {k: v for k, v in settings.items() if v is not None or k not in optional}


def _checked(model: type[Any], settings: dict[str, Any], where: str) -> Any:
    try:
        return validated(model, settings, _SOURCE)
    except UserError as error:
        message = str(error).removeprefix(f"in {_SOURCE}: ")
        raise UserError(f"in {_SOURCE}, {where}: {message}") from error
