"""Every table, figure, claim and measurement, and what each of them needs.

The workflow, the command line and the report read these lists. What makes an entry is imported
when it is made, and none of it imports torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from lietransformer.experiments.plan import ExperimentPlan
    from lietransformer.experiments.preset import Preset
    from lietransformer.experiments.task import TaskModule

TaskName = Literal["constellations", "springs", "qm9"]
PartName = Literal[
    "constellations", "data_efficiency", "parameter_efficiency", "ablations", "draws", "qm9"
]

_HERE = "lietransformer.experiments"

# The parts of the sweep that train each task's models.
PARTS: dict[TaskName, tuple[PartName, ...]] = {
    "constellations": ("constellations",),
    "springs": ("data_efficiency", "parameter_efficiency", "ablations", "draws"),
    "qm9": ("qm9",),
}

# What is computed without training: the class of its settings.
MEASUREMENTS: dict[str, str] = {
    "invariance": f"{_HERE}.symmetry.config:InvarianceConfig",
    "complexity": f"{_HERE}.cost.config:ComplexityConfig",
    "lifting": f"{_HERE}.symmetry.lifting_config:LiftingConfig",
}


# What reads their files, and fails with a KeyError, TypeError or ValueError where it cannot.
MEASUREMENT_READERS: dict[str, str] = {
    "invariance": f"{_HERE}.symmetry.read:parse",
    "complexity": f"{_HERE}.cost.read:parse",
    "lifting": f"{_HERE}.symmetry.figures.figure2:parse",
}


@dataclass(frozen=True)
class Entry:
    """A table or a figure.

    Attributes:
        maker: `module:function` that makes it from a `report.runs.Sweep`.
        parts: the parts of the sweep whose runs it shows.
        measurement: the measurement that it shows.
    """

    maker: str
    parts: tuple[PartName, ...] = ()
    measurement: str | None = None

    def make(self, sweep: Any) -> Any:
        return resolve_name(self.maker)(sweep)


def _springs(name: str, *parts: PartName) -> Entry:
    return Entry(f"{_HERE}.springs.figures.{name}", parts or ("data_efficiency",))


TABLES: dict[str, Entry] = {
    "table1": Entry(f"{_HERE}.constellations.tables:build", ("constellations",)),
    "table2": Entry(f"{_HERE}.qm9.tables:build", ("qm9",)),
    "draws": Entry(f"{_HERE}.springs.tables:build", ("draws",)),
}
FIGURES: dict[str, Entry] = {
    "figure2": Entry(f"{_HERE}.symmetry.figures.figure2:draw", measurement="lifting"),
    "figure3": Entry(f"{_HERE}.symmetry.figures.figure3:draw", measurement="invariance"),
    "figure4": _springs("figure4:draw"),
    "figure5": _springs("rollout_error:draw_figure5"),
    "figure6": _springs("trajectories:draw_figure6"),
    "figure7": _springs("parameter_efficiency:draw_figure7", "parameter_efficiency"),
    "figure8": _springs("parameter_efficiency:draw_figure8", "parameter_efficiency"),
    "figure9": _springs("rollout_error:draw_figure9"),
    "figure10": _springs("figure10:draw"),
    "figure11": _springs("trajectories:draw_figure11"),
    # Not in the paper:
    "complexity": Entry(f"{_HERE}.cost.figures.complexity:draw", measurement="complexity"),
    "growth": Entry(f"{_HERE}.cost.figures.growth:draw", measurement="complexity"),
}

# Each of these modules has a tuple CLAIMS.
_CLAIMS = (
    f"{_HERE}.constellations.claims",
    f"{_HERE}.symmetry.claims",
    f"{_HERE}.qm9.claims",
    f"{_HERE}.springs.claims.data_efficiency",
    f"{_HERE}.springs.claims.long_rollouts",
    f"{_HERE}.springs.claims.parameter_efficiency",
    f"{_HERE}.springs.claims.ablations",
    f"{_HERE}.cost.claims",
)


def claims() -> list[Any]:
    """The paper's claims (`report.claims.verdict.Claim`) in the order of their numbers."""
    return sorted(_all_claims(), key=lambda claim: claim.number)


def _all_claims() -> Iterator[Any]:
    for module in _CLAIMS:
        yield from resolve_name(f"{module}:CLAIMS")


def plan_of(task: str) -> "ExperimentPlan":
    """The `plan.py` of an experiment."""
    return import_module(f"{_HERE}.{task}.plan")


def task_of(name: str) -> "TaskModule":
    """The `task.py` of an experiment. Imports torch."""
    return import_module(f"{_HERE}.{name}.task")


def presets() -> "tuple[Preset, ...]":
    """All models of the paper that this package builds, by experiment. Imports torch."""
    makers = (resolve_name(f"{_HERE}.{task}.presets:presets") for task in get_args(TaskName))
    return tuple(preset for maker in makers for preset in maker())


def get_preset(task: str, model: str) -> "Preset":
    """The model of that name for that task; an unknown one is answered with those that exist."""
    for preset in presets():
        if (preset.task, preset.model) == (task, model):
            return preset
    known = ", ".join(f"{preset.task}/{preset.model}" for preset in presets())
    raise ValueError(f"there is no model {task}/{model}. Use one of {known}.")
