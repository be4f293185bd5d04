"""Small sweeps, and invented speeds."""

from pathlib import Path

from lietransformer.forecast.forecast import Forecast
from lietransformer.forecast.speed import Speed, subject
from lietransformer.forecast.workload import planned
from lietransformer.settings import read_settings
from lietransformer.sweep.plan import Plan
from lietransformer.sweep.reading import resolve

ROOT = Path(__file__).parents[2]
TIERS = ROOT / "workflow" / "tiers"

# One model of three, and nothing else.
ONE_MODEL = (
    "tier=smoke",
    "compute.device=cpu",
    "compute.seeds_per_job=2",
    "springs.data={systems: 120, validation: 20, test: 20, long_chunk: 100}",
    "springs.training={epochs: 2, evaluations: 2, test_examples: 4, validation_examples: 4}",
    "constellations.models=[]",
    "qm9.models=[]",
    "springs.data_efficiency.models=[Fully-connected (direct)]",
    "springs.data_efficiency.seeds=3",
    "springs.parameter_efficiency.models=[]",
    "springs.ablations.kinds=[]",
    "springs.draws.draws=0",
    "springs.by_model={Fully-connected (direct): {architecture: {width: 8, layers: 1}}}",
)


def plan_of(results: Path, *overrides: str) -> Plan:
    """A sweep of the project's own configuration with some changes."""
    return Plan(resolve(read_settings(ROOT / "config.yaml", overrides), TIERS), results)


def some_speed(step: float = 2.0, gflops: float = 50.0) -> Speed:
    """Round numbers."""
    return Speed(
        step=step,
        validation=0.5,
        test=0.25,
        start=10.0,
        memory_gb=1.5,
        weight_bytes=4_000_000,
        test_bytes=100.0,
        gflops=gflops,
        processor="a processor",
        measured="2026-01-02T03:04:05+00:00",
    )


def subjects_of(plan: Plan) -> set[str]:
    return {subject(*planned(plan, each)) for each in plan.trained}


def forecast(results: Path, *overrides: str, gflops: float | None = None) -> Forecast:
    """A forecast with the same speed for everything."""
    plan = plan_of(results, *overrides)
    speeds = dict.fromkeys(subjects_of(plan), some_speed())
    return Forecast(plan, speeds, at_once=2, gflops=gflops)
