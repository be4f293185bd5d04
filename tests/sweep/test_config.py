"""config.yaml: what it may say, and what is said to whoever mistypes it."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from lietransformer.errors import UserError
from lietransformer.settings import read_settings
from lietransformer.sweep.config import Compute, SweepConfig, Tier
from lietransformer.sweep.plan import Plan
from lietransformer.sweep.reading import is_changed, merged, resolve
from lietransformer.sweep.schema import schema
from tests.sweep.sweeps import NO_ARCHIVE, ROOT, TIERS, plan


def config_with_every_key() -> dict[str, Any]:
    """config.yaml as it is when all its keys are uncommented."""
    lines = (ROOT / "config.yaml").read_text().splitlines()
    key = re.compile(r"^# (\s*[\w-]+:( |$).*|\s{10,}\S.*)$")
    text = "\n".join(match[1] if (match := key.match(line)) else line for line in lines)
    # What looks like a key but is none: the editor's hint and what the tiers are.
    names = r"^(yaml-language-server|smoke|workstation|paper):.*$"
    text = re.sub(names, "", text, flags=re.MULTILINE)
    content: dict[str, Any] = yaml.safe_load(text)
    return content


@pytest.mark.parametrize("tier", ["smoke", "workstation", "paper"])
def test_every_tier_is_sound(tier: str) -> None:
    assert plan(tier, published="use").packs


def test_the_file_as_it_is() -> None:
    assert resolve(read_settings(ROOT / "config.yaml"), TIERS).tier == "workstation"


def test_every_key_of_the_file_can_be_uncommented() -> None:
    sweep = resolve(config_with_every_key(), TIERS)
    assert sweep.springs.data_efficiency.seeds == list(range(10))
    assert sweep.constellations.by_model["LieTransformer-T2"]["architecture"]["width"] == 64
    assert Plan(sweep, NO_ARCHIVE).packs


def test_the_file_names_every_key() -> None:
    given = config_with_every_key()

    def missing(model: type[BaseModel], found: Any, path: str) -> list[str]:
        names = []
        for name, field in model.model_fields.items():
            if not isinstance(found, dict) or name not in found:
                names.append(f"{path}{name}")
            elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                names += missing(field.annotation, found[name], f"{path}{name}.")
        return names

    assert missing(SweepConfig, given, "") == ["qm9.by_model"]


def test_the_papers_values_in_the_file_are_those_of_the_tier() -> None:
    """Where a comment says `paper: 8`, the paper's tier has it."""
    paper = resolve({"tier": "paper"}, TIERS)
    assert (len(paper.constellations.seeds), len(paper.springs.data_efficiency.seeds)) == (8, 10)
    given = config_with_every_key()
    for name in ("models", "n_train", "seeds"):
        assert given["springs"]["data_efficiency"][name] == _as_given(
            getattr(paper.springs.data_efficiency, name)
        )
    for name in ("models", "targets", "augmentations"):
        assert given["qm9"][name] == getattr(paper.qm9, name)


def _as_given(value: Any) -> Any:
    return len(value) if value and value == list(range(len(value))) else value


def test_settings_on_top_of_a_tier() -> None:
    sweep = resolve(
        {
            "tier": "smoke",
            "springs": {"training": {"epochs": 7}},
            "springs__data_efficiency__seeds": [3, 5],
        },
        TIERS,
    )
    assert sweep.springs.training["epochs"] == 7
    assert sweep.springs.training["compile"] is False  # of the tier
    assert sweep.springs.data_efficiency.seeds == [3, 5]
    assert sweep.compute == Compute(**{**sweep.compute.model_dump(), "device": "auto"})


def test_snakemakes_command_line_leaves_texts_within_values() -> None:
    sweep = resolve(
        {
            "tier": "smoke",
            "qm9__training": {"epochs": "2", "compile": "false", "learning_rate": "1e-3"},
            "qm9__n_train": "null",
            "qm9__targets": ["homo", "2020-99-99"],
            "springs__data_efficiency__n_train": ["10", "25"],
        },
        TIERS,
    )
    assert sweep.qm9.training["epochs"] == 2
    assert sweep.qm9.training["compile"] is False
    assert float(sweep.qm9.training["learning_rate"]) == 1e-3
    assert sweep.qm9.n_train is None
    assert sweep.qm9.targets == ["homo", "2020-99-99"]
    assert sweep.springs.data_efficiency.n_train == [10, 25]


def test_a_sweep_that_is_not_its_tiers() -> None:
    assert not is_changed(resolve({"tier": "paper"}, TIERS), TIERS)
    how = {"tier": "paper", "compute__gpus": 0, "tracking": "none", "published": "only"}
    assert not is_changed(resolve(how, TIERS), TIERS)
    assert is_changed(resolve({"tier": "paper", "qm9__seeds": 2}, TIERS), TIERS)


@pytest.mark.parametrize(
    ("budget", "seconds"), [("90s", 90), ("15m", 900), ("1.5h", 5400), ("0", 0), (0, 0), ("0m", 0)]
)
def test_the_time_for_verification(budget: str | int, seconds: float) -> None:
    sweep = resolve({"tier": "smoke", "verification__budget": budget}, TIERS)
    assert sweep.verification.seconds == seconds


def test_only_the_workstation_verifies_and_it_trains_nothing_by_itself() -> None:
    tiers = {name: resolve({"tier": name}, TIERS) for name in get_args(Tier)}
    assert {name: (own.published, own.verification.seconds) for name, own in tiers.items()} == {
        "smoke": ("use", 0),
        "workstation": ("only", 900),
        "paper": ("use", 0),
    }


def test_merging_replaces_lists_and_merges_mappings() -> None:
    below = {"a": {"b": [1, 2], "c": 3}, "d": 4}
    assert merged(below, {"a": {"b": [5]}, "d": {"e": 6}}) == {
        "a": {"b": [5], "c": 3},
        "d": {"e": 6},
    }
    assert below == {"a": {"b": [1, 2], "c": 3}, "d": 4}


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"tier": "huge"}, "tier must be one of smoke, workstation, paper, got 'huge'"),
    ({"sprigns": {}}, r"sprigns: expected one of tier, .*found an unknown setting"),
    ({"springs__data_efficiency__sizes": [1]}, r"springs\.data_efficiency\.sizes: expected one of"),
    ({"springs__data_efficiency__seeds": "ten"}, r"springs\.data_efficiency\.seeds: .*list"),
    ({"springs__data_efficiency__n_train": [0]}, r"springs\.data_efficiency\.n_train\.0: "),
    ({"springs__training": {"seed": 1}}, r"springs\.training: seed: set where the sweep says"),
    ({"springs__data_efficiency__seeds": -1}, r"seeds: the number of seeds must be 0 or more"),
    ({"compute__limits__qm9__runtime": 5}, r"compute\.limits\.qm9\.runtime: "),
    ({"compute__device": "tpu"}, r"compute\.device: "),
    ({"compute__seeds_per_job": 0}, r"compute\.seeds_per_job: "),
    ({"compute__seeds_at_once": "often"}, r"compute\.seeds_at_once"),
    ({"springs__data_efficiency__models": ["LieConv"]}, "models of springs .*got 'LieConv'"),
    ({"springs__by_model": {"LieConv": {}}}, "models of springs .*got 'LieConv'"),
    ({"springs__training": {"epoch": 1}}, r"data_efficiency, .*: epoch: expected one of task"),
    ({"springs__training": {"epochs": 0}}, r"data_efficiency, .*: epochs: .*greater than or equal"),
    (
        {"constellations__by_model": {"LieTransformer-T2": {"architecture": {"width": 15}}}},
        r"constellations, LieTransformer-T2: .*the number of heads must divide the width",
    ),
    (
        {"constellations__by_model": {"LieTransformer-T2": {"architecture": {"group": "T(3)"}}}},
        r"architecture\.group: T\(3\) acts on a space of 3 dimensions",
    ),
    ({"springs__data__systems": 2}, r"springs\.data: .*systems"),
    ({"springs__data_efficiency__n_train": [100]}, "n_train=100 needs at least 140 systems"),
    ({"constellations__n_train": 49}, "at least 49 training examples, .* has 48"),
    ({"qm9__targets": ["mass"]}, r"qm9, LieConv-T3: target must be one of"),
    ({"qm9__augmentations": ["SE2"]}, r"augmentation for qm9 must be one of none, SO3"),
    ({"invariance__runs": 0}, r"invariance: runs: "),
    ({"tracking": "mlruns"}, r"tracking store must be a SQLite file"),
    ({"published": "maybe"}, r"published: .*'use', 'only' or 'ignore'"),
    ({"published": True}, r"published: .*'use', 'only' or 'ignore'"),
    ({"verification": {"budgets": "1m"}}, r"verification\.budgets: expected one of budget, seed"),
    ({"verification__budget": "soon"}, r"verification\.budget: must be a time such as 90s, 15m"),
    ({"verification__budget": 15}, r"verification\.budget: must be a time such as 90s, 15m"),
    ({"verification__budget": "-1m"}, r"verification\.budget: must be a time such as 90s, 15m"),
    ({"verification__budget": False}, r"verification\.budget: must be a time such as 90s, 15m"),
    ({"verification__seed": -1}, r"verification\.seed: "),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_mistakes_are_named_with_their_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Plan(resolve({"tier": "smoke", **changes}, TIERS)).require_valid_models()


def test_the_schema_is_up_to_date() -> None:
    path = ROOT / "workflow" / "schemas" / "config.schema.json"
    assert path.read_text() == schema(), "run `make schema`"


def test_the_schema_takes_what_the_settings_take() -> None:
    whole = json.loads(schema())
    jsonschema.validate(config_with_every_key(), whole)
    jsonschema.validate({"tier": "paper"}, whole)
    mistakes: tuple[dict[str, Any], ...] = ({"sprigns": {}}, {"compute": {"device": "tpu"}})
    for wrong in mistakes:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, whole)


def test_a_tier_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"settings from the YAML file .*workstation\.yaml"):
        resolve({}, tmp_path)
