"""`potential_gradient` by the passes, prepared once for all states of a trajectory."""

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from lietransformer.dynamics import hamiltonian
from lietransformer.kernels.potential.conditions import applies
from lietransformer.kernels.potential.potential import Potential

_PREPARED: WeakKeyDictionary[hamiltonian.Potential, Potential] = WeakKeyDictionary()


def supported(
    potential: hamiltonian.Potential,
    positions: Tensor,
    generator: torch.Generator | None,  # noqa: ARG001 – only models without randomness are known
) -> bool:
    """Whether the passes can compute it. If so, they are prepared for the present parameters."""
    prepared = _PREPARED.get(potential)
    if prepared is not None and prepared.serves(positions):
        return True
    features = potential.features
    if not applies(potential.model, positions, features):
        return False
    _PREPARED[potential] = Potential(potential.model, features)
    return True


def compute(
    potential: hamiltonian.Potential,
    positions: Tensor,
    generator: torch.Generator | None,  # noqa: ARG001
) -> Tensor:
    """∂V/∂q."""
    return _PREPARED[potential].gradient(hamiltonian.centred(positions))
