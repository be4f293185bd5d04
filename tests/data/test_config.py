"""Settings from YAML and from the command line, and mistakes in them."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from lietransformer.data.config import GeneratorConfig, read_config
from lietransformer.errors import UserError
from lietransformer.experiments.constellations.plan import ConstellationsConfig
from lietransformer.experiments.qm9.plan import QM9Config
from lietransformer.experiments.springs.plan import SpringsConfig


def test_defaults_are_the_papers() -> None:
    constellations = read_config(ConstellationsConfig)
    assert (constellations.train, constellations.validation, constellations.test) == (
        10_000,
        1_000,
        1_000,
    )
    assert (constellations.rotation, constellations.noise, constellations.field) == (0.33, 0.1, 24)
    springs = read_config(SpringsConfig)
    assert (springs.systems, springs.particles, springs.dimension) == (100_000, 6, 2)
    assert springs.step == 5 / 499
    assert (springs.chunk, springs.long_chunk, springs.test) == (5, 100, 2_000)
    qm9 = read_config(QM9Config)
    assert (qm9.source, qm9.train, qm9.seed) == ("qm9pack", 100_000, 0)


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "springs.yaml"
    path.write_text("# a comment\nsystems: 50\ntest: 10\nduration: 1e1\n")
    config = read_config(SpringsConfig, path, ["systems=60", "particles = 4"])
    assert (config.systems, config.test, config.particles) == (60, 10, 4)
    assert config.duration == 10.0


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing yet\n")
    assert read_config(SpringsConfig, path) == SpringsConfig()


@pytest.mark.parametrize(
    ("model", "text", "message"),
    [
        (SpringsConfig, "sytems: 50", "sytems: expected one of seed, systems"),
        (SpringsConfig, "systems: many", "systems: input should be a valid integer"),
        (SpringsConfig, "systems: many", "found 'many'"),
        (SpringsConfig, "systems: 0", "greater than or equal to 3; found 0"),
        (SpringsConfig, "systems: 2.5", "systems: input should be a valid integer"),
        (SpringsConfig, "dimension: 4", "dimension: input should be less than or equal to 3"),
        (SpringsConfig, "chunk: 501", "chunk must not be longer than states (500)"),
        (SpringsConfig, "systems: 100", "systems (100) must leave at least one"),
        (SpringsConfig, "duration: .inf", "duration: input should be a finite number"),
        (SpringsConfig, "[1, 2]", "lines of the form `key: value`"),
        (SpringsConfig, "systems: [1", "expected ',' or ']'"),
        (SpringsConfig, "seed: 18446744073709551617", "seed: input should be less than"),
        (SpringsConfig, "systems: yes", "systems: a number or a text was expected"),
        (SpringsConfig, "systems: 50\nsystems: 60", "a key that is given twice in line 1"),
        (SpringsConfig, "systems: 5\n? [a]\n: 3", "unhashable key"),
        (SpringsConfig, "particles: 100000000", "or memory would not suffice"),
        (SpringsConfig, "states: 100000000", "or memory would not suffice"),
        (SpringsConfig, "[" * 3000, "is not valid YAML"),
        (ConstellationsConfig, "keep_probability: 0", "keep_probability: input should be greater"),
        (QM9Config, "source: https://example.org/x", "needs a checksum"),
        (QM9Config, "checksum: abc", "md5: and 32, or sha256: and 64 digits"),
        (QM9Config, "checksum: md5:ad1ebd51ee7f5b3a6e32e974e5d54012", "not for qm9pack"),
    ],
)
def test_a_mistake_is_named(
    tmp_path: Path, model: type[GeneratorConfig], text: str, message: str
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_config(model, path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        SpringsConfig().systems = 5  # type: ignore[misc]


def test_a_wrong_override_is_not_blamed_on_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "springs.yaml"
    path.write_text("systems: 5000\n")
    with pytest.raises(UserError, match=r"springs\.yaml and --set: particles"):
        read_config(SpringsConfig, path, ["particles=x"])


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(UserError) as error:
        read_config(SpringsConfig, None, ["systems=x", "particles=1", "mass=3"])
    for key in ("systems", "particles", "mass"):
        assert f"{key}: " in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Check its name"):
        read_config(SpringsConfig, tmp_path / "none.yaml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not text"):
        read_config(SpringsConfig, path)


def test_an_override_without_a_value() -> None:
    with pytest.raises(UserError, match="KEY=VALUE, got systems"):
        read_config(SpringsConfig, None, ["systems"])
