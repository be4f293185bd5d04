"""SO(3), the rotations of space about the origin."""

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import Group
from lietransformer.groups.series import (
    arctangent_ratio,
    safe_norm,
    sine_ratio,
    versine_ratio,
)
from lietransformer.groups.so2 import half_turn_margin
from lietransformer.rng import normal, uniform_angle


def cross(
    a: Float[Tensor, "*#shape 3"], b: Float[Tensor, "*#shape 3"]
) -> Float[Tensor, "*shape 3"]:
    """a × b over the last axis, whatever the other axes are."""
    return torch.linalg.cross(a, b, dim=-1)


def skew(vector: Float[Tensor, "*shape 3"]) -> Float[Tensor, "*shape 3 3"]:
    """The matrix K of the cross product: K·x = vector × x."""
    x, y, z = vector.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).unflatten(-1, (3, 3))


def quaternion_of_rotation(matrix: Float[Tensor, "*shape 3 3"]) -> Float[Tensor, "*shape 4"]:
    """The unit quaternion (w, x, y, z) of a rotation, w ≥ 0 (up to rounding at half turns).

    4·q·qᵀ is linear in the rotation matrix; each of its rows is q times one component of q.
    The row of the largest component is normalised, so nothing is ever divided by a small
    number: accurate at the identity, at half turns and in between.
    """
    r = matrix
    r00, r11, r22 = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    wx, wy, wz = (
        r[..., 2, 1] - r[..., 1, 2],
        r[..., 0, 2] - r[..., 2, 0],
        r[..., 1, 0] - r[..., 0, 1],
    )
    xy, xz, yz = (
        r[..., 1, 0] + r[..., 0, 1],
        r[..., 2, 0] + r[..., 0, 2],
        r[..., 2, 1] + r[..., 1, 2],
    )
    ww, xx = 1 + r00 + r11 + r22, 1 + r00 - r11 - r22
    yy, zz = 1 - r00 + r11 - r22, 1 - r00 - r11 + r22
    rows = torch.stack(
        [
            torch.stack([ww, wx, wy, wz], dim=-1),
            torch.stack([wx, xx, xy, xz], dim=-1),
            torch.stack([wy, xy, yy, yz], dim=-1),
            torch.stack([wz, xz, yz, zz], dim=-1),
        ],
        dim=-2,
    )
    largest = torch.stack([ww, xx, yy, zz], dim=-1).argmax(dim=-1)
    index = largest[..., None, None].expand(*largest.shape, 1, 4)
    row = rows.gather(-2, index)[..., 0, :]
    quaternion = row / row.square().sum(-1, keepdim=True).sqrt()
    # q and −q are the same rotation, and w ≥ 0 chooses between them. At a half turn w = 0 up
    # to rounding, whose sign must not choose the axis: there its first component that is not
    # zero is positive.
    margin = half_turn_margin(matrix.dtype)
    w, x, y, z = quaternion[..., None].unbind(-2)
    leading = torch.where(x.abs() > margin, x, torch.where(y.abs() > margin, y, z))
    flip = torch.where(w.abs() > margin, w, leading) < 0
    return torch.where(flip, -quaternion, quaternion)


def rotation_of_quaternion(quaternion: Float[Tensor, "*shape 4"]) -> Float[Tensor, "*shape 3 3"]:
    """The rotation of a unit quaternion: R = I + 2wK + 2K² with K the skew matrix of (x, y, z)."""
    w = quaternion[..., :1, None]
    k = skew(quaternion[..., 1:])
    identity = torch.eye(3, dtype=quaternion.dtype, device=quaternion.device)
    return identity + 2 * w * k + 2 * (k @ k)


class SO3(Group):
    """ν[log(R)] = θ·axis (App. F). Not transitive: the orbit invariant of x is ‖x‖.

    The origin of an orbit is (0, 0, ‖x‖), its stabiliser the rotations about the third
    axis. They are sampled, so a model is equivariant in distribution, and exactly when the
    samples move with the input. The centre x = 0, fixed by everything, is lifted as if it
    lay on the third axis.
    """

    name = "SO(3)"
    space_dimension = 3
    matrix_size = 3
    algebra_dimension = 3
    canonical_dimension = 9
    orbit_dimension = 1
    stabiliser_order = None

    def inverse(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape m m"]:
        return g.mT

    def exp(self, coordinates: Float[Tensor, "*shape algebra"]) -> Float[Tensor, "*shape m m"]:
        """Rodrigues: I + (sin θ/θ)·K + ((1−cos θ)/θ²)·K² with K the skew matrix."""
        squared_angle = coordinates.square().sum(-1)[..., None, None]
        k = skew(coordinates)
        identity = torch.eye(3, dtype=coordinates.dtype, device=coordinates.device)
        return identity + sine_ratio(squared_angle) * k + versine_ratio(squared_angle) * (k @ k)

    def log_coordinates(self, g: Float[Tensor, "*shape m m"]) -> Float[Tensor, "*shape algebra"]:
        """θ·axis by way of the quaternion (cos θ/2, axis·sin θ/2).

        The paper's θ/(2 sin θ)·(R − Rᵀ) loses all accuracy near θ = π; this does not.
        """
        quaternion = quaternion_of_rotation(g)
        vector = quaternion[..., 1:]
        half_angle_ratio = arctangent_ratio(vector.square().sum(-1), quaternion[..., 0])
        return 2 * half_angle_ratio[..., None] * vector

    def canonical_coordinates(
        self, g: Float[Tensor, "*shape m m"]
    ) -> Float[Tensor, "*shape canonical"]:
        """The nine entries of R: unlike any three numbers, continuous everywhere."""
        return g.flatten(-2)

    def section(self, points: Float[Tensor, "*shape n"]) -> Float[Tensor, "*shape m m"]:
        """A rotation that takes the third axis to the direction of x.

        No choice is continuous on the whole sphere; this one (two mirrored formulas, one a
        hemisphere) is smooth away from the equator and accurate at both poles. The coset
        s(x)H, all that the lift depends on in distribution, does not notice the seam.
        """
        radius = safe_norm(points)
        is_centre = radius == 0
        x, y, z = (points / torch.where(is_centre, 1, radius)[..., None]).unbind(-1)
        z = torch.where(is_centre, 1, z)
        sign = torch.where(z < 0, -torch.ones_like(z), torch.ones_like(z))
        a = -1 / (sign + z)
        b = x * y * a
        first = torch.stack([1 + sign * x * x * a, sign * b, -sign * x], dim=-1)
        second = torch.stack([b, sign + y * y * a, -y], dim=-1)
        return torch.stack([first, second, torch.stack([x, y, z], dim=-1)], dim=-1)

    def orbit_invariants(
        self, g: Float[Tensor, "*shape m m"], points: Float[Tensor, "*shape n"]
    ) -> Float[Tensor, "*shape orbit"]:
        return safe_norm(points)[..., None]

    def sample(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        scale: float = 1.0,
    ) -> Float[Tensor, "*shape m m"]:
        """Haar-uniform rotations: a normal vector of R⁴, normalised, is a uniform quaternion."""
        quaternion = normal(*shape, 4, generator=generator, dtype=dtype, device=device)
        return rotation_of_quaternion(quaternion / quaternion.norm(dim=-1, keepdim=True))

    def sample_stabiliser(
        self,
        *shape: int,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> Float[Tensor, "*shape m m"]:
        angle = uniform_angle(*shape, generator=generator, dtype=dtype, device=device)
        return self.stabiliser_rotation(angle)

    def stabiliser_rotation(self, angles: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape m m"]:
        zero = torch.zeros_like(angles)
        return self.exp(torch.stack([zero, zero, angles], dim=-1))
