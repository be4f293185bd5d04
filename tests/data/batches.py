"""Comparing batches."""

import torch

from lietransformer.data.batches import Batch


def same(one: Batch, other: Batch) -> bool:
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return type(one) is type(other) and all(torch.equal(a, b) for a, b in pairs)
