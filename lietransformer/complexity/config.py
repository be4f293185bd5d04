"""Settings of the measurement."""

from typing import Annotated

from pydantic import Field, model_validator

from lietransformer.data.config import GeneratorConfig

Sizes = list[Annotated[int, Field(ge=1, le=10**6)]]


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

    @model_validator(mode="after")
    def _fits(self) -> "ComplexityConfig":
        if self.width % self.heads:
            raise ValueError(f"heads: expected to divide the width {self.width}, not {self.heads}")
        # Of more than half of a set the layers compute all pairs, which would be another law.
        if 2 * self.at >= min(self.set_sizes) or 2 * max(self.neighbourhoods) >= self.within:
            raise ValueError("neighbourhoods: expected less than half of the set they are in")
        return self

    def sizes(self) -> list[tuple[int, int]]:
        """All pairs of set size and neighbourhood, each once."""
        along_sets = [(size, self.at) for size in self.set_sizes]
        along_neighbourhoods = [(self.within, size) for size in self.neighbourhoods]
        return sorted({*along_sets, *along_neighbourhoods})
