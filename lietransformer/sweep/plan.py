"""What a sweep has to make: datasets, and runs in packs of seeds. All of it is checked here.

A run's folder carries a hash of everything that its numbers follow from. So a setting that changes
leads to another folder: what is there stays, what depends on the setting is made anew, and going
back to the old setting finds the old runs.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from lietransformer.complexity.config import ComplexityConfig
from lietransformer.data.constellations import ConstellationsConfig
from lietransformer.data.qm9 import QM9Config
from lietransformer.data.springs import SpringsConfig
from lietransformer.errors import UserError, explain
from lietransformer.invariance.config import InvarianceConfig
from lietransformer.lifting.config import LiftingConfig
from lietransformer.models.presets import presets
from lietransformer.settings import validated
from lietransformer.sweep.config import Ablation, SweepConfig
from lietransformer.sweep.jobs import (
    Configuration,
    Dataset,
    Pack,
    PartName,
    as_sets,
    digest,
    slug,
)
from lietransformer.tasks.base import TaskName
from lietransformer.tracking.address import NO_TRACKING, SQLITE, database_of, require_usable
from lietransformer.training.config import RunConfig

_SOURCE = Path("config.yaml")
_GENERATORS: dict[TaskName, type[BaseModel]] = {
    "constellations": ConstellationsConfig,
    "springs": SpringsConfig,
    "qm9": QM9Config,
}
# What is measured or computed without training, by the command that does it.
_MEASUREMENTS: dict[str, type[BaseModel]] = {
    "invariance": InvarianceConfig,
    "complexity": ComplexityConfig,
    "lifting": LiftingConfig,
}
# The model that is changed, and how.
_ABLATIONS: dict[Ablation, tuple[str, dict[str, Any]]] = {
    "softmax": ("LieTransformer-T2", {"attention": {"normalisation": "softmax"}}),
    "log_lift": ("LieTransformer-SE2", {"pair_features": "log"}),
}
# Where a run is computed does not decide which run it is.
_NOT_OF_A_CONFIGURATION = ("seed", "data_seed", "sampling_seed", "device")


class Plan:
    """Everything that a sweep makes below its folder of results.

    Args:
        config: what is swept.
        results: the folder.
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
        self.measurements: dict[str, Path] = {
            name: self._measurement(name) for name in _MEASUREMENTS
        }
        self.datasets: dict[TaskName, Dataset] = {
            task: self._dataset(task) for task in get_args(TaskName)
        }
        self._configurations: dict[Path, Configuration] = {}
        self._plan_constellations()
        self._plan_springs()
        self._plan_qm9()

    @property
    def configurations(self) -> list[Configuration]:
        return list(self._configurations.values())

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

    def files_that_stand_for_nothing(self) -> list[Path]:
        """Summaries of runs, and signs that MLflow has something, which is no longer there."""
        summaries = [
            pack.summary
            for pack in self.packs.values()
            if pack.summary.exists() and not all(run.is_done for run in pack.runs)
        ]
        uri = self.config.tracking
        is_lost = uri.startswith(SQLITE) and not database_of(uri).exists()
        # Not that of the store itself: whatever writes to it makes it, and all training waits for
        # that sign.
        signs = {*(self.results / "tracking").glob("*")} - {self.results / "tracking" / "store"}
        return [*summaries, *(sorted(signs) if is_lost else ())]

    def _measurement(self, name: str) -> Path:
        """The file that a measurement makes."""
        settings = _checked(_MEASUREMENTS[name], getattr(self.config, name), name)
        return self.results / f"{name}-{digest(settings.model_dump(mode='json'))}.json"

    def measurement_arguments(self, name: str) -> str:
        """What the command of a measurement is told, for a shell."""
        return as_sets(getattr(self.config, name))

    def manifest(self) -> dict[str, Any]:
        """What belongs to this sweep, for those who read the results: see `analysis`."""
        return {
            "schema_version": 2,
            "tier": self.config.tier,
            "is_changed": self.is_changed,
            # Without what says how: it would make all tables anew, with the same numbers.
            "config": self.config.model_dump(mode="json", exclude={"compute"}),
            "runs": list(self._runs()),
            "measurements": {
                name: path.relative_to(self.results).as_posix()
                for name, path in self.measurements.items()
            },
        }

    def _runs(self) -> Iterator[dict[str, Any]]:
        for each in self.configurations:
            for seed in each.seeds:
                yield {
                    "folder": each.run(seed).path.relative_to(self.results).as_posix(),
                    "parts": [part for part, seeds in each.parts.items() if seed in seeds],
                    "task": each.task,
                    "model": each.settings["model"],
                    "n_train": each.settings.get("n_train"),
                    "target": each.settings.get("target"),
                    "augmentation": each.settings.get("augmentation", "none"),
                    "seed": seed,
                    "ablation": each.ablation,
                }

    # ---- what is swept

    def _plan_constellations(self) -> None:
        sweep = self.config.constellations
        _require_models("constellations", sweep.models, sweep.by_model)
        for model in sweep.models:
            for augmentation in sweep.augmentations:
                settings = {"augmentation": augmentation, "n_train": sweep.n_train}
                self._add(
                    *("constellations", "constellations"),
                    {"model": model, **settings, **sweep.settings_for(model)},
                    sweep.seeds,
                )

    def _plan_springs(self) -> None:
        sweep = self.config.springs
        by_data, by_size, ablations = (
            sweep.data_efficiency,
            sweep.parameter_efficiency,
            sweep.ablations,
        )
        _require_models("springs", [*by_data.models, *by_size.models], sweep.by_model)
        for model in by_data.models:
            for n_train in by_data.n_train:
                self._add_springs("data_efficiency", model, n_train, by_data.seeds)
        for model in by_size.models:
            self._add_springs("parameter_efficiency", model, by_size.n_train, by_size.seeds)
        for kind in ablations.kinds:
            model, architecture = _ABLATIONS[kind]
            self._add_springs("ablations", model, ablations.n_train, ablations.seeds)
            self._add_springs(
                *("ablations", model, ablations.n_train, ablations.seeds),
                ablation=kind,
                architecture=architecture,
            )

    def _add_springs(
        self,
        part: PartName,
        model: str,
        n_train: int,
        seeds: list[int],
        *,
        ablation: Ablation | None = None,
        architecture: dict[str, Any] | None = None,
    ) -> None:
        settings = self.config.springs.settings_for(model)
        if architecture is not None:
            settings = {
                **settings,
                "architecture": {**settings.get("architecture", {}), **architecture},
            }
        self._add(
            part, "springs", {"model": model, "n_train": n_train, **settings}, seeds, ablation
        )

    def _plan_qm9(self) -> None:
        sweep = self.config.qm9
        _require_models("qm9", sweep.models, sweep.by_model)
        for model in sweep.models:
            for target in sweep.targets:
                for augmentation in sweep.augmentations:
                    settings = {
                        "target": target,
                        "augmentation": augmentation,
                        "n_train": sweep.n_train,
                    }
                    self._add(
                        *("qm9", "qm9"),
                        {"model": model, **settings, **sweep.settings_for(model)},
                        sweep.seeds,
                    )

    # ---- checking and naming

    def _dataset(self, task: TaskName) -> Dataset:
        given = getattr(self.config, task).data
        settings = _checked(_GENERATORS[task], given, f"{task}.data")
        content = settings.model_dump(mode="json")
        return Dataset(task, given, self.results / "data" / f"{task}-{digest(content)}.h5")

    def _add(
        self,
        part: PartName,
        task: TaskName,
        settings: dict[str, Any],
        seeds: list[int],
        ablation: Ablation | None = None,
    ) -> None:
        """Plan runs of a configuration; it may be planned already for another part."""
        if not seeds:
            return
        compute, data = self.config.compute, self.datasets[task]
        known = {
            "task": task,
            **_without_nothing(settings),
            "data": str(data.path),
            "precision": compute.precision,
        }
        # Checked as if there were the device that is asked for; the job's node has to have it.
        on = "cuda" if compute.device == "cuda" or compute.precision == "tf32" else "cpu"
        where = f"{part}, {settings['model']}"
        run = _checked(RunConfig, {**known, "device": on, "seed": seeds[0], "threads": 1}, where)
        self._require_examples(run, where)
        identity = {k: v for k, v in run.identity.items() if k not in _NOT_OF_A_CONFIGURATION}
        name = digest({**identity, "dataset": data.path.stem})
        folder = self._folder(run, ablation, name)
        configuration = self._configurations.setdefault(
            folder, Configuration(task, known, folder, data, ablation)
        )
        configuration.parts.setdefault(part, set()).update(seeds)

    def _folder(self, run: RunConfig, ablation: Ablation | None, name: str) -> Path:
        names = [run.target, run.augmentation if run.task != "springs" else None]
        names += [None if run.n_train is None else f"n{run.n_train}", ablation, name]
        variant = "-".join(name for name in names if name)
        return self.results / "runs" / run.task / slug(run.model) / variant.replace("_", "-")

    def _require_examples(self, run: RunConfig, where: str) -> None:
        """Refuse more training examples than the dataset will have."""
        data = _checked(_GENERATORS[run.task], self.datasets[run.task].settings, run.task)
        if isinstance(data, SpringsConfig):
            assert run.n_train is not None
            needed = run.n_train + min(run.n_train, data.validation) + data.test
            found = f"{data.systems} systems in springs.data"
            is_enough = needed <= data.systems
            expected = f"at least {needed} systems for n_train={run.n_train} ({where})"
        else:
            total = data.train
            is_enough = run.n_train is None or run.n_train <= total
            expected = f"at least {run.n_train} training examples for {where}"
            found = f"{total} in {run.task}.data"
        if not is_enough:
            remedy = "make the dataset larger, or n_train smaller, in config.yaml"
            raise UserError(explain(expected=expected, found=found, remedy=remedy))

    def _packs_of(self, configuration: Configuration) -> Iterator[Pack]:
        """Seeds in packs that stay as they are when more seeds are added."""
        size = self.config.compute.seeds_per_job
        by_pack: dict[int, list[int]] = {}
        for seed in configuration.seeds:
            by_pack.setdefault(seed // size, []).append(seed)
        return (Pack(configuration, tuple(seeds)) for seeds in by_pack.values())


def _without_nothing(settings: dict[str, Any]) -> dict[str, Any]:
    """Without what does not apply to a task; a null elsewhere means something."""
    optional = ("n_train", "target")
    return {k: v for k, v in settings.items() if v is not None or k not in optional}


def _checked(model: type[Any], settings: dict[str, Any], where: str) -> Any:
    try:
        return validated(model, settings, _SOURCE)
    except UserError as error:
        message = str(error).removeprefix(f"in {_SOURCE}: ")
        raise UserError(f"in {_SOURCE}, {where}: {message}") from error


def _require_models(task: str, models: list[str], by_model: dict[str, Any]) -> None:
    names = [preset.model for preset in presets() if preset.task == task]
    for name in (*models, *by_model):
        if name not in names:
            raise UserError(
                explain(
                    expected=f"models of {task} in config.yaml to be among {', '.join(names)}",
                    found=repr(name),
                    remedy="mend its name",
                )
            )
