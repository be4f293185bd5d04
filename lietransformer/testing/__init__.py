"""Assertions about symmetry, for this package's own tests and for your groups and layers.

Each takes any callable and measures how far it is from having the property:

    assert_group_laws(group)                       a new group is one, and acts as it says
    assert_invariant(model, group, cloud)          f(ux) = f(x)
    assert_equivariant(layer, group, lifted)       f(ux) = u·f(x)
    assert_permutation_invariant(model, cloud)     the order of points is irrelevant
    assert_permutation_equivariant(layer, lifted)  outputs follow their points
    assert_padding_invariant(model, cloud)         masked points are irrelevant

A cloud is a `PointCloud`, which the group moves by its action on points, or a `LiftedCloud`,
which it moves by multiplication from the left: with the latter the lift samples move with
the input, and models of continuous stabilisers can be tested exactly. A callable that takes
a `generator` gets an identically seeded one in every call.
"""

from lietransformer.testing.group_laws import assert_group_laws
from lietransformer.testing.symmetry import (
    assert_equivariant,
    assert_invariant,
    assert_padding_invariant,
    assert_permutation_equivariant,
    assert_permutation_invariant,
    invariance_error,
    relative_error,
    transform,
)

__all__ = [
    "assert_equivariant",
    "assert_group_laws",
    "assert_invariant",
    "assert_padding_invariant",
    "assert_permutation_equivariant",
    "assert_permutation_invariant",
    "invariance_error",
    "relative_error",
    "transform",
]
