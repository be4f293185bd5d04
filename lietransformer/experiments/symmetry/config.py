"""Settings of the measurement."""

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from lietransformer.data.config import GeneratorConfig

# What is computed grows with the square of the number of lift samples.
_MOST_SAMPLES = 2_000


class InvarianceConfig(GeneratorConfig):
    """Settings of the measurement; the defaults are the paper's (Figure 3, §4.1)."""

    runs: int = Field(
        100, ge=1, le=10**5, description="how often model, example and rotation are drawn"
    )
    largest: int = Field(
        250, ge=1, le=_MOST_SAMPLES, description="the largest number of lift samples"
    )
    numbers: int = Field(
        12,
        ge=1,
        le=_MOST_SAMPLES,
        description="how many numbers of lift samples, from 1 to the largest, at equal ratios "
        "as far as whole numbers can be; the paper does not say",
    )
    scheme: Literal["evenly_spaced", "random"] = Field(
        "evenly_spaced",
        description="evenly_spaced: the angles of a point's lift samples are at equal steps with "
        "one random offset; random: each is drawn on its own",
    )
    layers: int = Field(1, ge=1, le=100, description="blocks of the model")
    width: int = Field(8, ge=1, le=1024, description="feature width of the model")
    heads: int = Field(2, ge=1, le=64, description="attention heads; they divide the width")
    kernel_width: int = Field(
        2, ge=1, le=64, description="hidden width of the location MLP of each head"
    )

    @model_validator(mode="after")
    def _heads_divide_the_width(self) -> "InvarianceConfig":
        if self.width % self.heads:
            raise ValueError(f"heads: expected to divide the width {self.width}, not {self.heads}")
        return self

    def lift_samples(self) -> list[int]:
        """The numbers of lift samples, each once: small ones coincide when they are rounded."""
        if self.numbers == 1:
            return [self.largest]
        ratios = np.geomspace(1, self.largest, self.numbers)
        return sorted({int(number) for number in np.rint(ratios)})
