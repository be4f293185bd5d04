"""What several kernels ask of pairs and of rows."""

from dataclasses import replace

import torch
from torch import Tensor

from lietransformer.kernels.conditions import leading_keys, real_elements
from lietransformer.packing import Packing
from lietransformer.pairs import PairGeometry

FIRST = torch.arange(9) < torch.tensor([[4], [9], [0]])
SCATTERED = FIRST.flip(-1)


def geometry(mask: Tensor) -> PairGeometry:
    return PairGeometry(torch.zeros(3, 9, 9, 2), mask)


def test_counts_are_known_where_real_elements_come_first() -> None:
    pairs = geometry(FIRST[:, None])
    for counts in (leading_keys(pairs), real_elements(pairs)):
        assert counts is not None
        assert counts.tolist() == [4, 9, 0]
    assert leading_keys(pairs) is leading_keys(pairs), "computed once"
    assert leading_keys(geometry(SCATTERED[:, None])) is None
    assert leading_keys(geometry(FIRST[:, None].expand(3, 9, 9))) is None
    assert leading_keys(replace(pairs, indices=torch.zeros(3, 9, 9, dtype=torch.long))) is None


def test_rows_know_the_real_elements_where_each_query_has_its_own_keys() -> None:
    pairs = geometry(FIRST[:, None].expand(3, 9, 9))
    assert real_elements(pairs) is None
    for mask, expected in ((FIRST, [4, 9, 0]), (SCATTERED, None)):
        packing = Packing.of(mask)
        assert packing is not None
        counts = real_elements(pairs.packed(packing))
        assert (None if counts is None else counts.tolist()) == expected


def test_not_asked_for_some_queries_or_where_it_cannot_be_traced() -> None:
    pairs = geometry(FIRST[:, None])
    assert real_elements(next(pairs.split(5))) is None
    seen: list[Tensor | None] = []

    def function(x: Tensor) -> Tensor:
        seen.append(real_elements(pairs))
        return x.sum()

    torch.func.vmap(function)(torch.ones(2, 3))
    assert seen == [None]
