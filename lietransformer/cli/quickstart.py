"""A minute with a LieTransformer-SE(2): its size, its symmetry, and a task that it learns.

The task is to name the seven tetrominoes, two pairs of which are mirror images. In training
every piece has one orientation; in the test it has any. A model without the symmetry would
have to guess there.
"""

import time
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from lietransformer.clouds import PointCloud
from lietransformer.groups import get_group
from lietransformer.lift import LiftConfig
from lietransformer.models import LieTransformer, LieTransformerConfig, count_parameters
from lietransformer.nn import AttentionConfig
from lietransformer.testing import invariance_error

TETROMINOES = {
    "I": ((0, 0), (1, 0), (2, 0), (3, 0)),
    "O": ((0, 0), (1, 0), (0, 1), (1, 1)),
    "T": ((0, 0), (1, 0), (2, 0), (1, 1)),
    "S": ((0, 0), (1, 0), (1, 1), (2, 1)),
    "Z": ((0, 1), (1, 1), (1, 0), (2, 0)),
    "J": ((0, 0), (1, 0), (2, 0), (0, 1)),
    "L": ((0, 0), (1, 0), (2, 0), (2, 1)),
}
NOISE = 0.05
COPIES_IN_BATCH = 4
COPIES_IN_TEST = 64
LEARNT = 0.5

CONFIG = LieTransformerConfig(
    group="SE(2)",
    input_width=1,
    output_width=len(TETROMINOES),
    width=32,
    layers=2,
    heads=4,
    attention=AttentionConfig(kernel_width=8),
    lift=LiftConfig("evenly_spaced", samples=4),
)


def make_batch(
    copies: int, *, rotated: bool, generator: torch.Generator
) -> tuple[PointCloud, Tensor]:
    """Noisy copies of every piece and their labels, in one orientation or in any."""
    labels = torch.arange(len(TETROMINOES)).repeat(copies)
    pieces = torch.tensor(list(TETROMINOES.values()), dtype=torch.float32)
    pieces = pieces - pieces.mean(dim=1, keepdim=True)
    points = pieces[labels]
    points = points + NOISE * torch.randn(points.shape, generator=generator)
    if rotated:
        rotations = get_group("SO(2)")
        turn = rotations.sample(len(points), generator=generator, dtype=points.dtype)
        points = rotations.act(turn[:, None], points)
    return PointCloud(points), labels


@torch.no_grad()
def accuracy(model: LieTransformer, *, rotated: bool, seed: int) -> float:
    """Share of correct answers on fresh pieces."""
    generator = torch.Generator().manual_seed(seed)
    cloud, labels = make_batch(COPIES_IN_TEST, rotated=rotated, generator=generator)
    return (model(cloud, generator=generator).argmax(-1) == labels).float().mean().item()


@torch.no_grad()
def report_invariance(model: LieTransformer, *, seed: int) -> None:
    """Print the measured invariance error for lift samples that move and that are fresh."""
    generator = torch.Generator().manual_seed(seed)
    cloud, _ = make_batch(COPIES_IN_BATCH, rotated=False, generator=generator)
    lifted = model.lift(cloud, generator=generator)
    moving = invariance_error(model.forward_lifted, model.group, lifted)
    print("Invariance to SE(2) before training, relative error of the logits in float32:")
    print(f"  lift samples that move with the input  {moving:.1e}  (exact up to rounding)")
    for samples in (1, 2, 4):
        sampled = LieTransformer(replace(CONFIG, lift=LiftConfig("evenly_spaced", samples)))
        sampled.load_state_dict(model.state_dict())
        fresh = invariance_error(sampled, sampled.group, cloud, fresh_samples=True)
        print(f"  fresh lift samples, {samples} for each point   {fresh:.1e}")


def train(model: LieTransformer, *, seconds: float, seed: int) -> None:
    """Adam on fresh batches in one orientation, with a line of progress now and then."""
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(seed)
    begin = time.monotonic()
    step, next_line = 0, 0.0
    while (elapsed := time.monotonic() - begin) < seconds:
        cloud, labels = make_batch(COPIES_IN_BATCH, rotated=False, generator=generator)
        loss = F.cross_entropy(model(cloud, generator=generator), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
        if elapsed >= next_line:
            turned = accuracy(model, rotated=True, seed=seed)
            print(
                f"  {elapsed:5.1f} s  step {step:5d}  training loss {loss.item():.3f}  "
                f"accuracy on rotated pieces {turned:.3f}",
                flush=True,
            )
            next_line += seconds / 8


def run(*, seconds: float, seed: int) -> bool:
    """Build, measure, train; whether it learnt."""
    torch.manual_seed(seed)
    model = LieTransformer(CONFIG)
    print(
        f"LieTransformer-SE(2): {CONFIG.layers} layers of width {CONFIG.width}, "
        f"{CONFIG.heads} heads, {CONFIG.lift.samples} lift samples per point, "
        f"{count_parameters(model):,} parameters\n"
    )
    report_invariance(model, seed=seed)
    print(f"\nToy task: name the tetromino. Training on one orientation for {seconds:g} s:")
    train(model, seconds=seconds, seed=seed + 1)
    same = accuracy(model, rotated=False, seed=seed + 2)
    turned = accuracy(model, rotated=True, seed=seed + 3)
    learnt = turned >= LEARNT
    chance = 1 / len(TETROMINOES)
    print(f"\nTest accuracy (chance {chance:.3f})")
    print(f"  in the orientation of the training set      {same:.3f}")
    print(f"  in orientations never seen while training   {turned:.3f}")
    print("It learnt." if learnt else f"Below {LEARNT}: it did not learn in that time.")
    return learnt
