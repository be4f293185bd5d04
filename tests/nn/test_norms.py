"""Masked batch norm against torch's own on the real points alone."""

import pytest
import torch
from torch import nn

from lietransformer.nn.norms import MaskedBatchNorm
from tests.cases import seeded


def test_equals_batch_norm_on_the_real_points() -> None:
    """In training, in the running averages it leaves behind, and in evaluation."""
    generator = seeded()
    ours, theirs = MaskedBatchNorm(5).double(), nn.BatchNorm1d(5).double()
    with torch.no_grad():
        for norm in (ours, theirs):
            norm.weight.copy_(torch.arange(1.0, 6.0))
            norm.bias.copy_(torch.arange(5.0))
    for _ in range(3):
        x = 3 + 2 * torch.randn(4, 7, 5, generator=generator, dtype=torch.float64)
        mask = torch.rand(4, 7, generator=generator) < 0.6
        padded = x.masked_fill(~mask[..., None], torch.nan)
        torch.testing.assert_close(ours(padded, mask)[mask], theirs(x[mask]))
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_variance, theirs.running_var)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(padded, mask)[mask], theirs(x[mask]))
    assert ours(padded, mask).isfinite().all()


@pytest.mark.parametrize("count", [0, 1])
def test_one_point_or_none_teaches_nothing(count: int) -> None:
    norm = MaskedBatchNorm(3)
    mask = torch.arange(4)[None] < count
    output = norm(torch.randn(1, 4, 3, generator=seeded()), mask)
    assert output.isfinite().all()
    assert (norm.running_mean == 0).all()
    assert (norm.running_variance == 1).all()


def test_moments_are_precise_under_autocast() -> None:
    norm, reference = MaskedBatchNorm(3), MaskedBatchNorm(3)
    x = 10 + torch.randn(50, 3, generator=seeded())
    mask = torch.ones(50, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        low = x.bfloat16()
        output = norm(low, mask)
    assert output.dtype == torch.bfloat16
    assert norm.running_mean.dtype == torch.float32
    torch.testing.assert_close(output, reference(low.float(), mask).bfloat16())


def test_gradients() -> None:
    norm = MaskedBatchNorm(2).double()
    x = torch.randn(2, 4, 2, generator=seeded(), dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, True], [True, False, True, True]])
    assert torch.autograd.gradcheck(lambda x: norm(x, mask)[mask], (x,))
