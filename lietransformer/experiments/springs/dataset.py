"""Springs: trajectories of particles that attract each other in pairs (§4.3, App. I.3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import ValidationError
from torch import Tensor

from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.data.writer import create_dataset
from lietransformer.dynamics import SpringSystem, trajectory
from lietransformer.errors import UserError
from lietransformer.experiments.springs.plan import SpringsConfig
from lietransformer.progress import progress
from lietransformer.rng import normal, stream, uniform
from lietransformer.threads import one_thread

KIND = "springs"
_NUMBERS_AT_ONCE = 1 << 23  # of the trajectories in memory: 64 MB


def config_of(file: DatasetFile) -> SpringsConfig:
    """The settings that a springs dataset was generated with."""
    try:
        return SpringsConfig(**file.config)
    except ValidationError as error:
        raise DatasetError(
            f"{file.path} has settings that the springs generator does not accept. Generate it "
            "again with `lietransformer data springs`."
        ) from error


@dataclass(frozen=True, eq=False)
class _Systems:
    """Some systems with their initial states; systems are the last axis."""

    masses: Float[Tensor, "particles systems"]
    stiffness: Float[Tensor, "particles systems"]
    initial: Float[Tensor, "2 particles space systems"]
    start: Int[Tensor, "systems"]
    long_start: Int[Tensor, "systems"]

    def cut(self, first: int, last: int) -> "_Systems":
        return _Systems(**{name: t[..., first:last] for name, t in vars(self).items()})


def generate(config: SpringsConfig, path: Path) -> None:
    """Integrate all systems and write what the experiments need of them, batch by batch.

    System number i is the same whatever the number of systems: it depends on the seed, on i
    and on the settings of a single system. So the first n systems of a file are nested
    training sets, and a smaller file is the beginning of a larger one.
    """
    count, per_state = config.systems, (2, config.particles, config.dimension)
    particles = (count, config.particles)
    with (
        create_dataset(
            path, kind=KIND, config=config.model_dump(mode="json"), seed=config.seed
        ) as file,
        progress(total=count, description=KIND, unit=" systems") as bar,
        one_thread(),
        torch.no_grad(),
    ):
        file.write("times", np.linspace(0, config.duration, config.states))
        masses = file.array("systems/masses", particles, "f8")
        stiffness = file.array("systems/stiffness", particles, "f8")
        initial = file.array("systems/initial", (count, *per_state), "f8")
        start = file.array("chunks/start", (count,), "i4")
        chunks = file.array("chunks/states", (count, config.chunk, *per_state), "f8")
        test = config.test
        long_start = file.array("test/long_start", (test,), "i4")
        long_chunks = file.array("test/long_states", (test, config.long_chunk, *per_state), "f8")
        whole = file.array("test/trajectories", (test, config.states, *per_state), "f8")

        done = 0
        for systems in _all_systems(config):
            wanted = min(len(systems.start), count - done)
            states = _integrate(config, systems)[..., :wanted]
            kept = systems.cut(0, wanted)
            masses.append(kept.masses.T.numpy())
            stiffness.append(kept.stiffness.T.numpy())
            initial.append(kept.initial.movedim(-1, 0).numpy())
            start.append(kept.start.numpy())
            chunks.append(_chunks(states, kept.start, config.chunk).numpy())

            first_test = max(0, count - test - done)  # those before it are not for testing
            if first_test < wanted:
                tested = kept.cut(first_test, wanted)
                for_test = states[..., first_test:]
                long_start.append(tested.long_start.numpy())
                long_chunks.append(_chunks(for_test, tested.long_start, config.long_chunk).numpy())
                whole.append(for_test.movedim(-1, 0).numpy())
            done += wanted
            bar.update(wanted)


def _all_systems(config: SpringsConfig) -> Iterator[_Systems]:
    """At least as many systems as wanted, in pieces whose trajectories fit in memory.

    Pieces are never cut short for the last system: how a vectorised loop rounds can depend
    on its length, and a system must not depend on how many follow it.
    """
    per_system = config.states * 2 * config.particles * config.dimension
    piece = max(1, _NUMBERS_AT_ONCE // per_system)
    for batch, first in enumerate(range(0, config.systems, config.generation_batch)):
        systems = _draw(config, stream(config.seed, KIND, batch))
        wanted = min(config.generation_batch, config.systems - first)
        for begin in range(0, wanted, piece):
            yield systems.cut(begin, begin + piece)


def _draw(config: SpringsConfig, generator: torch.Generator) -> _Systems:
    """One generation batch: m = 0.1 + 3U, k = 5U, q₀ = 0.4N, p₀ = 0.6N less its mean.

    The mean of p₀ is over the systems of the batch, as in the data of the paper, so a single
    system moves as a whole.
    """
    count, particles = config.generation_batch, config.particles
    shape = (particles, config.dimension, count)
    draw = {"generator": generator, "dtype": torch.float64, "device": "cpu"}
    masses = 0.1 + 3 * uniform(particles, count, **draw)  # type: ignore[arg-type]
    stiffness = 5 * uniform(particles, count, **draw)  # type: ignore[arg-type]
    position = 0.4 * normal(*shape, **draw)  # type: ignore[arg-type]
    momentum = 0.6 * normal(*shape, **draw)  # type: ignore[arg-type]
    momentum = momentum - momentum.mean(dim=-1, keepdim=True)
    return _Systems(
        masses,
        stiffness,
        torch.stack([position, momentum]),
        _draw_start(config.states, config.chunk, count, generator),
        _draw_start(config.states, config.long_chunk, count, generator),
    )


def _draw_start(
    states: int, chunk: int, count: int, generator: torch.Generator
) -> Int[Tensor, "count"]:
    """Cut trajectories into consecutive chunks and choose one of each: where it starts."""
    return chunk * torch.randint(states // chunk, (count,), generator=generator)


def _integrate(
    config: SpringsConfig, systems: _Systems
) -> Float[Tensor, "times 2 particles space systems"]:
    """All states of all systems."""
    field = SpringSystem(systems.masses.contiguous(), systems.stiffness.contiguous()).velocity
    initial = systems.initial.contiguous()
    states = initial.new_empty(config.states, *initial.shape)
    path = trajectory(field, initial, step=config.step, states=config.states)
    for time, state in enumerate(path):
        states[time] = state
    if not states[-1].isfinite().all():
        raise UserError(
            f"trajectories grow without bound at the step {config.step:.3g}. Make the step "
            "smaller: raise states or lower duration."
        )
    return states


def _chunks(
    states: Float[Tensor, "times 2 particles space systems"],
    start: Int[Tensor, "systems"],
    length: int,
) -> Float[Tensor, "systems length 2 particles space"]:
    """The states start … start + length − 1 of each system, another start for each."""
    times = start[:, None] + torch.arange(length)
    systems = torch.arange(len(start))[:, None]
    return states.movedim(-1, 0)[systems, times]
