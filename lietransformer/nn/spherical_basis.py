"""The basis of distances and angles that DimeNet sees (Gasteiger et al., 2020)."""

import math
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class SphericalBasis(nn.Module):
    """a_ln(d, α) = u(d/c)·N_ln·j_l(z_ln·d/c)·Y_l⁰(α), l < spherical, 1 ≤ n ≤ radial.

    z_ln is the n-th zero of the spherical Bessel function j_l, N_ln = √2/|j_{l+1}(z_ln)|, u
    the given envelope. A function of lengths and angles only, hence invariant to rotations.
    """

    roots: Tensor
    norms: Tensor

    def __init__(self, spherical: int, radial: int, cutoff: float, envelope: nn.Module) -> None:
        super().__init__()
        roots = spherical_bessel_roots(spherical, radial)
        norms = math.sqrt(2) / np.abs(
            [_scipy_bessel(order + 1, roots[order]) for order in range(spherical)]
        )
        harmonics = [math.sqrt((2 * order + 1) / (4 * math.pi)) for order in range(spherical)]
        scale = norms * np.array(harmonics)[:, None]
        self.register_buffer("roots", torch.from_numpy(roots), persistent=False)
        self.register_buffer("norms", torch.from_numpy(scale), persistent=False)
        self.cutoff = cutoff
        self.envelope = envelope

    def forward(
        self,
        length: Float[Tensor, "edges"],
        angle: Float[Tensor, "triplets"],
        edge: Int[Tensor, "triplets"],
    ) -> Float[Tensor, "triplets basis"]:
        """The basis for each angle and the length of the edge with the given number."""
        x = length / self.cutoff
        # In double precision: the recurrence loses digits where the argument is small.
        bessel = spherical_bessel(x.double()[:, None, None] * self.roots.double())
        radial = self.envelope(x)[:, None, None] * (self.norms.double() * bessel).to(x.dtype)
        angular = legendre(angle.cos(), len(self.roots))
        return (radial[edge] * angular[..., None]).flatten(1)


def spherical_bessel(z: Float[Tensor, "edges l n"]) -> Float[Tensor, "edges l n"]:
    """j_l(z) with the order l along the second axis, by j_{l+1} = (2l+1)/z·j_l − j_{l−1}."""
    before, now = z.cos() / z, z.sin() / z
    chosen = [now[:, 0]]
    for order in range(z.shape[1] - 1):
        before, now = now, (2 * order + 1) / z * now - before
        chosen.append(now[:, order + 1])
    return torch.stack(chosen, dim=1)


def legendre(x: Float[Tensor, "angles"], count: int) -> Float[Tensor, "angles count"]:
    """P_0(x) … P_{count−1}(x), by (l+1)·P_{l+1} = (2l+1)·x·P_l − l·P_{l−1}."""
    before, now = torch.zeros_like(x), torch.ones_like(x)
    values = [now]
    for order in range(count - 1):
        before, now = now, ((2 * order + 1) * x * now - order * before) / (order + 1)
        values.append(now)
    return torch.stack(values, dim=1)


def spherical_bessel_roots(orders: int, count: int) -> Float[np.ndarray, "orders count"]:
    """The first positive zeros of j_0 … j_{orders−1}.

    Between two neighbouring zeros of j_l lies exactly one of j_{l+1}; those of j_0 are πn.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 – optional

    roots = np.zeros((orders, count))
    known = np.pi * np.arange(1, count + orders)
    roots[0] = known[:count]
    for order in range(1, orders):
        known = np.array(
            [
                brentq(lambda z, order=order: _scipy_bessel(order, z), low, high, xtol=1e-14)
                for low, high in pairwise(known)
            ]
        )
        roots[order] = known[:count]
    return roots


def _scipy_bessel(order: int, z: float | np.ndarray) -> np.ndarray:
    from scipy.special import spherical_jn  # noqa: PLC0415 – optional

    return np.asarray(spherical_jn(order, z))
