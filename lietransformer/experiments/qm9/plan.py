"""QM9: settings of the dataset, what is swept, the paper's settings of training."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from lietransformer.data.config import Augmentation, GeneratorConfig
from lietransformer.data.download import is_url, require_checksum_format
from lietransformer.experiments.plan import Planned, Seeds, Settings, Sizes, Swept
from lietransformer.experiments.qm9.properties import PROPERTIES
from lietransformer.experiments.qm9.sources.molecules import CHARACTERIZED
from lietransformer.experiments.qm9.sources.package import PACKAGE

# SchNet and DimeNet++ see distances and angles only.
_INVARIANT = ("SchNet", "DimeNet++")
MODELS = (
    *("LieTransformer-T3", "LieTransformer-SE3", "LieConv-T3", "LieConv-SE3"),
    *_INVARIANT,
)
AUGMENTATIONS = ("none", "SO3")
OPTIONS = ("target", "size_pool")
SUMMARY = "12 properties of 130,831 molecules (Table 2)"
FIGSHARE = "figshare"


class QM9Config(GeneratorConfig):
    """Settings of the QM9 dataset; the defaults are the paper's."""

    seed: int = Field(0, ge=0, lt=2**32, description="of the split")
    source: str = Field(
        PACKAGE,
        description=f"{PACKAGE}, an installed package; {FIGSHARE}, the original archive, "
        "downloaded; or path or URL of a copy of that archive",
    )
    checksum: str | None = Field(
        None, description="md5:… or sha256:… of the archive; a URL needs one"
    )
    train: int = Field(100_000, ge=2, description="number of training molecules")
    test_fraction: float = Field(
        0.1, gt=0, lt=1, description="share of all molecules for testing; the rest validate"
    )
    limit: int | None = Field(
        None, ge=3, description="use only this many molecules, the first ones; null: all"
    )

    @field_validator("checksum")
    @classmethod
    def _is_checksum(cls, checksum: str | None) -> str | None:
        if checksum is not None:
            require_checksum_format(checksum)
        return checksum

    @model_validator(mode="after")
    def _fits(self) -> "QM9Config":
        if is_url(self.source) and self.checksum is None:
            raise ValueError("a source that is a URL needs a checksum, md5:… or sha256:…")
        if self.source in (PACKAGE, FIGSHARE) and self.checksum is not None:
            raise ValueError(f"a checksum is for a path or a URL, not for {self.source}")
        return self


class QM9Sweep(Swept):
    """Table 2: models × targets × augmentations × seeds."""

    models: list[str] = Field(description="as `lietransformer models` lists them")
    targets: list[str] = Field(description="properties, such as homo; [] for none")
    augmentations: list[Augmentation] = Field(description="of training molecules: none, SO3")
    n_train: int | None = Field(None, ge=1, description="training molecules; null: all there are")
    seeds: Seeds = Field(description="how many, or a list of them")

    def planned(self) -> Iterator[Planned]:
        for model in self.models:
            # A rotation changes nothing for an invariant model.
            augmentations = ["none"] if model in _INVARIANT else self.augmentations
            for target in self.targets:
                for augmentation in augmentations:
                    own = {"model": model, "target": target, "augmentation": augmentation}
                    settings = {**own, "n_train": self.n_train, **self.settings_for(model)}
                    yield Planned("qm9", settings, self.seeds)


Generator = QM9Config
Sweep = QM9Sweep


def paper_settings(given: Mapping[str, Any]) -> Settings:
    """App. I.2 for LieTransformer and LieConv; SchNet and DimeNet++ as in their own papers."""
    model = str(given.get("model", ""))
    if model in _INVARIANT:
        # 3 million steps on 100,000 molecules. DimeNet++: decay by 0.01 in 4 million steps after
        # 3,000 of warm-up; SchNet: decay by 0.96 every 100,000 steps.
        is_schnet = model == "SchNet"
        return {
            "epochs": 960,
            "batch_size": 32,
            "learning_rate": 1e-3,
            "betas": (0.9, 0.999),
            "amsgrad": not is_schnet,
            "ema": 0.99 if is_schnet else 0.999,
            "schedule": "exponential",
            "schedule_per": "step",
            "warmup": 0.0 if is_schnet else 0.001,
            "final_rate": 0.96**30 if is_schnet else 0.01**0.75,
            "evaluation_batch_size": 32,
        }
    is_lie_conv = model.startswith("LieConv")
    return {
        "epochs": 500,
        "batch_size": 75,
        "learning_rate": 3e-3 if is_lie_conv else 3e-4,
        "betas": (0.9, 0.999) if is_lie_conv else (0.5, 0.9),
        "schedule": "cosine_warmup",
        "schedule_per": "step",
        "evaluation_batch_size": 75,
    }


def check(run: Any) -> None:
    names = [prop.name for prop in PROPERTIES]
    if run.target is None:
        raise ValueError(f"target is needed for qm9: one of {', '.join(names)}")
    if run.target not in names:
        raise ValueError(f"target must be one of {', '.join(names)}, got {run.target!r}")


def sizes(run: Any, data: QM9Config) -> Sizes:
    molecules = min(data.limit or CHARACTERIZED, CHARACTERIZED)
    test = int(data.test_fraction * molecules)
    return Sizes(run.n_train or data.train, molecules - data.train - test, test)


def require_examples(run: Any, data: QM9Config) -> None:
    if run.n_train is not None and run.n_train > data.train:
        raise ValueError(
            f"it needs at least {run.n_train} training examples, but the dataset has {data.train}"
        )
