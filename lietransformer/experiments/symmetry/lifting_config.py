"""Settings of the example."""

from pydantic import Field, model_validator

from lietransformer.data.config import GeneratorConfig


class LiftingConfig(GeneratorConfig):
    """Settings of the example. The paper's figure is a drawing without numbers."""

    points: int = Field(6, ge=1, le=1000, description="points in the plane")
    lift_samples: int = Field(6, ge=1, le=1000, description="elements that each is lifted to")
    ball: int = Field(12, ge=1, description="elements in the neighbourhood of the one chosen")
    samples: int = Field(6, ge=1, description="how many of them are drawn for attention")

    @model_validator(mode="after")
    def _fits(self) -> "LiftingConfig":
        if not self.samples <= self.ball <= self.points * self.lift_samples:
            raise ValueError("expected samples ≤ ball ≤ points · lift_samples")
        return self
