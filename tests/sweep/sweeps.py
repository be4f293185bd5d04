"""Sweeps to test with."""

from pathlib import Path
from typing import Any

from lietransformer.sweep import Plan
from lietransformer.sweep.reading import resolve

ROOT = Path(__file__).parents[2]
TIERS = ROOT / "workflow" / "tiers"
NO_ARCHIVE = Path("no archive", "results")


def plan(tier: str = "smoke", results: Path = NO_ARCHIVE, **changes: Any) -> Plan:
    """The plan of a tier with some keys changed."""
    return Plan(resolve({"tier": tier, **changes}, TIERS), results)
