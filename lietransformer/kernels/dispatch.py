"""Which functions of the method are replaced, and by which module of this folder."""

from lietransformer.dispatch import Replacement
from lietransformer.kernels import attention, build, head_mlp, pair_mlp, planar_average, potential

REPLACEMENTS: dict[str, Replacement] = {
    "lietransformer.dynamics.hamiltonian.potential_gradient": potential,
    "lietransformer.experiments.symmetry.attention.location_sums": planar_average,
    "lietransformer.nn.attention.weighted_sums": attention,
    "lietransformer.nn.mlp.through_layers": head_mlp,
    "lietransformer.nn.pair_mlp.pair_mlp": pair_mlp,
}


def find(name: str) -> Replacement | None:
    """What replaces a function, given its module and name; None where nothing does."""
    return REPLACEMENTS.get(name)


def replaces_potential(config: object) -> bool:
    """Whether the gradient of such a model's potential is replaced, in float32 on a CPU."""
    return build.is_possible() and potential.written_for(config)
