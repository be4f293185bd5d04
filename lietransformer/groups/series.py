"""Functions of θ² that are smooth at θ = 0, with all their derivatives.

The exponential and logarithm of rotations contain quotients such as sin θ / θ. Written
naively they are 0/0 at the identity, and so are their first and second derivatives, which
a Hamiltonian force and its training gradient go through. Here each quotient is a function
of x = θ² (never of θ = ‖r‖, whose own gradient is undefined at zero): a Taylor polynomial
where x is small and the closed form elsewhere.
"""

from collections.abc import Callable
from fractions import Fraction
from math import comb, factorial

import torch
from jaxtyping import Float
from torch import Tensor

# With this many terms the polynomials below are exact to float64 rounding at the switch.
_TERMS = 12
_SWITCH = 1.0
_ARCTANGENT_SWITCH = 0.01


def _bernoulli_numbers(count: int) -> list[Fraction]:
    """B₀ … B₍count₋₁₎ from the recurrence Σₖ C(n+1, k) Bₖ = 0."""
    numbers = [Fraction(1)]
    for n in range(1, count):
        total = sum((comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-total / (n + 1))
    return numbers


_BERNOULLI = _bernoulli_numbers(2 * _TERMS + 1)
_SINE_RATIO = [(-1) ** k / factorial(2 * k + 1) for k in range(_TERMS)]
_VERSINE_RATIO = [(-1) ** k / factorial(2 * k + 2) for k in range(_TERMS)]
_SINE_REMAINDER = [(-1) ** k / factorial(2 * k + 3) for k in range(_TERMS)]
_INVERSE_JACOBIAN = [float(abs(_BERNOULLI[2 * k]) / factorial(2 * k)) for k in range(1, _TERMS + 1)]
_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(_TERMS)]


def _polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    value = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _switched(
    x: Tensor, coefficients: list[float], closed_form: Callable[[Tensor], Tensor], switch: float
) -> Tensor:
    small = x < switch
    # The closed form must not even be evaluated at zero: its gradient there is NaN, and
    # NaN times the zero that `where` sends back is NaN again.
    elsewhere = closed_form(torch.where(small, torch.ones_like(x), x))
    nearby = _polynomial(torch.where(small, x, torch.zeros_like(x)), coefficients)
    return torch.where(small, nearby, elsewhere)


def sine_ratio(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """sin θ / θ as a function of x = θ²."""

    def closed_form(x: Tensor) -> Tensor:
        angle = x.sqrt()
        return angle.sin() / angle

    return _switched(x, _SINE_RATIO, closed_form, _SWITCH)


def versine_ratio(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """(1 − cos θ) / θ² as a function of x = θ²."""

    def closed_form(x: Tensor) -> Tensor:
        # 1 − cos θ = 2 sin²(θ/2) has no cancellation.
        return 2 * (x.sqrt() / 2).sin().square() / x

    return _switched(x, _VERSINE_RATIO, closed_form, _SWITCH)


def sine_remainder(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """(θ − sin θ) / θ³ as a function of x = θ²."""

    def closed_form(x: Tensor) -> Tensor:
        angle = x.sqrt()
        return (angle - angle.sin()) / (x * angle)

    return _switched(x, _SINE_REMAINDER, closed_form, _SWITCH)


def inverse_jacobian_ratio(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """(1 − (θ/2) cot(θ/2)) / θ² as a function of x = θ², for |θ| < 2π."""

    def closed_form(x: Tensor) -> Tensor:
        half = x.sqrt() / 2
        return (1 - half * half.cos() / half.sin()) / x

    return _switched(x, _INVERSE_JACOBIAN, closed_form, _SWITCH)


def arctangent_ratio(
    squared_sine: Float[Tensor, "..."], cosine: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """atan2(s, c) / s as a function of s² and c, for s ≥ 0; smooth at s = 0 where c > 0."""
    small = squared_sine < _ARCTANGENT_SWITCH * cosine * cosine
    small = small & (cosine > 0)
    one = torch.ones_like(cosine)
    cosine_nearby = torch.where(small, cosine, one)
    z = torch.where(small, squared_sine, torch.zeros_like(one)) / cosine_nearby.square()
    nearby = _polynomial(z, _ARCTANGENT) / cosine_nearby
    sine = torch.where(small, one, squared_sine).sqrt()
    elsewhere = torch.atan2(sine, torch.where(small, torch.zeros_like(one), cosine)) / sine
    return torch.where(small, nearby, elsewhere)


def safe_norm(vectors: Float[Tensor, "... d"]) -> Float[Tensor, "..."]:
    """‖v‖ over the last axis, with gradient zero (instead of NaN) at v = 0.

    Zero is also what is so short that its square underflows (1e-19 in float32).
    """
    squared = vectors.square().sum(-1)
    is_zero = squared < torch.finfo(squared.dtype).tiny
    return torch.where(is_zero, 0, torch.where(is_zero, 1, squared).sqrt())
