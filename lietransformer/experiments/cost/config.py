"""Settings of the measurement."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lietransformer.data.config import GeneratorConfig

Size = Annotated[int, Field(ge=1, le=10**6)]
Sizes = list[Size]


class StepSizes(BaseModel):
    """What a training step's cost depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    set_size: Size = Field(512, description="points of an example")
    neighbourhood: Size = Field(
        32, description="elements that one attends to, drawn from a ball of twice as many"
    )
    lift_samples: Size = Field(1, description="group elements over each point")
    layers: Size = Field(2, description="blocks of the model")
    batch: Size = Field(1, description="examples of a step")


class StepsConfig(BaseModel):
    """Training steps of whole models on SE(2), one size changed while the others are held."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    set_size: Sizes = Field(
        [256, 512, 1024, 2048, 4096],
        min_length=1,
        description="numbers of points of a training step's examples, with the other sizes `held`",
    )
    neighbourhood: Sizes = Field(
        [8, 16, 32, 64, 128], min_length=1, description="sizes of neighbourhoods, likewise"
    )
    # Not more: finding neighbours takes time in proportion to the square of the elements.
    lift_samples: Sizes = Field([1, 2, 4], min_length=1, description="numbers of lift samples")
    layers: Sizes = Field([1, 2, 4, 8], min_length=1, description="numbers of blocks")
    batch: Sizes = Field([1, 2, 4, 8], min_length=1, description="numbers of examples of a step")
    held: StepSizes = Field(
        StepSizes(), description="the sizes that are held while another is changed"
    )
    repetitions: int = Field(
        2, ge=1, le=1000, description="how often each is timed; the shortest time counts"
    )

    @model_validator(mode="after")
    def _fits(self) -> "StepsConfig":
        for sizes in self.sizes():
            # As for the layers: another law holds where neighbours are masked out of all pairs.
            if 2 * sizes.neighbourhood >= sizes.set_size * sizes.lift_samples:
                raise ValueError(
                    f"neighbourhood: expected less than half of the {sizes.set_size} points, "
                    f"not {sizes.neighbourhood}"
                )
        return self

    def sizes(self) -> list[StepSizes]:
        """All that is measured, each once."""
        along = [
            self.held.model_copy(update={name: value})
            for name in StepSizes.model_fields
            for value in getattr(self, name)
        ]
        return list(dict.fromkeys(along))


class ComplexityConfig(GeneratorConfig):
    """Settings of the measurement. The paper has formulas only (App. G), and no sizes."""

    set_sizes: Sizes = Field(
        [128, 256, 512, 1024, 2048, 4096],
        min_length=1,
        description="numbers of group elements |G_f|, each with neighbourhoods of the size `at`",
    )
    neighbourhoods: Sizes = Field(
        [8, 16, 32, 64, 128],
        min_length=1,
        description="sizes of neighbourhoods, each in a set of the size `within`",
    )
    at: int = Field(32, ge=1, description="neighbourhood while the size of the set changes")
    within: int = Field(512, ge=1, description="size of the set while the neighbourhood changes")
    width: int = Field(128, ge=1, le=4096, description="features of each element, in and out")
    heads: int = Field(8, ge=1, le=64, description="attention heads; they divide the width")
    kernel_width: int = Field(
        16, ge=1, le=1024, description="hidden width of the location MLP, and d_mid of LieConv"
    )
    repetitions: int = Field(
        5, ge=1, le=1000, description="how often each is timed; the shortest time counts"
    )
    naive_pairs: int = Field(
        2**14,
        ge=0,
        description="LieConv without the PointConv trick is measured up to this many pairs: it "
        "needs a matrix for each",
    )
    steps: StepsConfig = Field(
        StepsConfig(), description="training steps of whole models, of the same width and heads"
    )

    @model_validator(mode="after")
    def _fits(self) -> "ComplexityConfig":
        if self.width % self.heads:
            raise ValueError(f"heads: expected to divide the width {self.width}, not {self.heads}")
        if self.width % 4:
            raise ValueError(f"width: expected a multiple of 4, for LieConv, not {self.width}")
        # Of more than half of a set the layers compute all pairs, which would be another law.
        if 2 * self.at >= min(self.set_sizes) or 2 * max(self.neighbourhoods) >= self.within:
            raise ValueError("neighbourhoods: expected less than half of the set they are in")
        return self

    def sizes(self) -> list[tuple[int, int]]:
        """All pairs of set size and neighbourhood, each once."""
        along_sets = [(size, self.at) for size in self.set_sizes]
        along_neighbourhoods = [(self.within, size) for size in self.neighbourhoods]
        return sorted({*along_sets, *along_neighbourhoods})
