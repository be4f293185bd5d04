"""Small sweeps, and speeds that were not measured."""

from pathlib import Path

from lietransformer.experiments.constellations.dataset import TEST_SETS
from lietransformer.forecast.datasets import DatasetSpeed
from lietransformer.forecast.measuring import Measurements, subjects_of
from lietransformer.forecast.speed import Speed
from lietransformer.settings import read_settings
from lietransformer.sweep.plan import Plan
from lietransformer.sweep.reading import resolve

ROOT = Path(__file__).parents[2]
TIERS = ROOT / "workflow" / "tiers"

# One model of three, and nothing else.
ONE_MODEL = (
    "tier=smoke",
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
    "invariance={runs: 2, largest: 2}",
)


def plan_of(results: Path, *overrides: str) -> Plan:
    """A sweep of the project's own configuration with some changes."""
    return Plan(resolve(read_settings(ROOT / "config.yaml", overrides), TIERS), results)


def some_speed(step: float = 2.0, gflops: float = 50.0) -> Speed:
    """Round numbers."""
    return Speed(
        step=step,
        fastest=step / 2,
        slowest=step * 2,
        steps=3,
        validation=0.5,
        test=0.25,
        preparation=10.0,
        memory_gb=1.5,
        gpu_memory_gb=None,
        data_bytes=10_000,
        parameters=1_000_000,
        test_bytes=100.0,
        gflops=gflops,
        clock="cpu",
        measured="2026-01-02T03:04:05+00:00",
        machine={"host": "here", "processor": "a processor", "cores": 4, "gpu": None},
    )


def some_measurements(plan: Plan, step: float = 2.0) -> Measurements:
    """The same speed for everything."""
    kinds = {
        "constellations": ("train", "validation", *TEST_SETS),
        "springs": ("systems", "chunks", "test"),
        "qm9": ("molecules", "atoms", "split"),
    }
    return Measurements(
        models=dict.fromkeys(subjects_of(plan, "cpu"), some_speed(step)),
        datasets={
            task: DatasetSpeed(0.001, dict.fromkeys(names, 10.0)) for task, names in kinds.items()
        },
        invariance=3.0,
        load=0.1,
    )
