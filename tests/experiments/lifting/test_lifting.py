"""`lietransformer lifting`: the example of Figure 2."""

import json
import math
from pathlib import Path

import pytest

from lietransformer.cli import main
from lietransformer.errors import UserError
from lietransformer.experiments.symmetry.lifting import example
from lietransformer.experiments.symmetry.lifting_config import LiftingConfig
from lietransformer.groups import get_group
from lietransformer.settings import validated


def test_elements_lie_above_their_points() -> None:
    config = LiftingConfig()
    made = example(config)
    assert len(made["elements"]) == config.points * config.lift_samples
    for number, (x, y, angle) in enumerate(made["elements"]):
        assert [x, y] == pytest.approx(made["points"][number // config.lift_samples])
        assert -math.pi <= angle <= math.pi


def test_the_ball_holds_the_nearest() -> None:
    """By the distance of SE(2), computed here from angles and points."""
    weight = get_group("SE(2)").rotation_weight
    config = LiftingConfig(lift_samples=1, points=9, ball=4, samples=2)
    made = example(config)
    assert made["chosen"] in made["ball"]
    assert set(made["sample"]) <= set(made["ball"])
    assert (len(made["ball"]), len(made["sample"])) == (4, 2)

    def distance(other: int) -> float:
        x, y, angle = made["elements"][made["chosen"]]
        u, v, turned = made["elements"][other]
        turn = (turned - angle + math.pi) % math.tau - math.pi
        # The translation of log(g⁻¹g') is longer than the way.
        half = turn / 2
        longer = half / math.sin(half) if half else 1.0
        return weight * abs(turn) + (1 - weight) * longer * math.hypot(u - x, v - y)

    nearest = sorted(range(9), key=distance)[:4]
    assert made["ball"] == sorted(nearest)


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "lifting.json"
    assert main(["lifting", "--out", str(out), "--set", "points=4"]) == 0
    assert len(json.loads(out.read_text())["points"]) == 4
    before = out.read_bytes()
    assert main(["lifting", "--out", str(out)]) == 1
    assert out.read_bytes() == before


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(UserError, match="samples ≤ ball"):
        validated(LiftingConfig, {"ball": 3, "samples": 4})
