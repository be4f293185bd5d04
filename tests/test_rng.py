"""Random streams by purpose."""

import itertools

import torch

from lietransformer.rng import stream


def test_a_stream_is_the_same_whenever_it_is_asked_for() -> None:
    first, second = (torch.rand(5, generator=stream(3, "order", 7)) for _ in range(2))
    assert torch.equal(first, second)


def test_streams_of_different_purposes_differ() -> None:
    purposes = [(), (0,), (0, 0), (1,), (1, 0), ("order",), ("order", 0), ("order", 1), ("a", 0)]
    drawn = [
        torch.rand(5, generator=stream(seed, *purpose))
        for seed, purpose in itertools.product((0, 1), purposes)
    ]
    for one, other in itertools.combinations(drawn, 2):
        assert not torch.equal(one, other)
