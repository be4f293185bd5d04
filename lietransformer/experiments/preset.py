"""A model of the paper: its name, and everything needed to build it."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from lietransformer.models.registry import ModelConfig, build_model, count_parameters
from lietransformer.models.set_transformer import SetTransformerConfig
from lietransformer.models.specialists import SpecialistConfig

SpringsPrediction = Literal["potential", "hamiltonian", "velocity"]
Prediction = SpringsPrediction | Literal["logits", "property"]


@dataclass(frozen=True)
class Preset:
    """A model of the paper.

    Attributes:
        task: "constellations", "springs" or "qm9".
        model: its name in the paper's tables and legends.
        config: everything needed to build it.
        predicts: what its outputs are. For springs: V(q), H(q, p) or (q̇, ṗ).
    """

    task: str
    model: str
    config: ModelConfig
    predicts: Prediction

    @property
    def group(self) -> str:
        """The group it is built to be invariant to; empty where it is built for none."""
        return getattr(self.config, "group", "")

    @property
    def size(self) -> str:
        """Layers × width, to tell the sizes of one model apart."""
        config = self.config
        if isinstance(config, SpecialistConfig):
            return ""
        if isinstance(config, SetTransformerConfig):
            return f"{config.encoder_layers}+{config.decoder_layers}x{config.width}"
        return f"{config.layers}x{config.width}"

    def build(self, *, seed: int) -> nn.Module:
        """The model with parameters drawn from the seed; the global random state stays."""
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed, which would seed other devices as well.
            torch.default_generator.manual_seed(seed)
            return build_model(self.config)

    @property
    def parameter_count(self) -> int:
        """The number of its parameters, found without allocating them where that is possible."""
        ours = not isinstance(self.config, SpecialistConfig)
        with torch.device("meta" if ours else "cpu"):
            return count_parameters(self.build(seed=0))
