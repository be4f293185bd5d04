"""Sweeps to test with."""

from pathlib import Path
from typing import Any

from lietransformer.sweep import Plan
from lietransformer.sweep.reading import resolve

ROOT = Path(__file__).parents[2]
TIERS = ROOT / "workflow" / "tiers"


def plan(tier: str = "smoke", **changes: Any) -> Plan:
    """The plan of a tier with some keys changed."""
    return Plan(resolve({"tier": tier, **changes}, TIERS))
