"""Several models of one architecture trained as one: their parameters along a new first axis.

A small model leaves most of a GPU idle. Adam is elementwise and each loss depends on its own
parameters alone, so a step of the stack is a step of each model, to rounding.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from lietransformer.device import send
from lietransformer.rng import Drawn, Request, stream
from lietransformer.training.cuda_graphs import CudaRecorder, Inputs, Recorder, Repeated
from lietransformer.training.experiment import Experiment
from lietransformer.training.optimiser import set_learning_rate
from lietransformer.training.random_buffers import DrawingAhead, enlarged
from lietransformer.training.state import RunState


class Stack:
    """The models of runs that are at the same step.

    Each run has the batches and the random numbers that it would have alone. Where batches differ
    in their number of points, all are padded to the largest.
    """

    def __init__(
        self,
        states: Sequence[RunState],
        passengers: Sequence[RunState] = (),
        recorder: Recorder | None = None,
    ) -> None:
        """Stack the models and what their optimisers know.

        Args:
            states: the runs.
            passengers: those among them that are ahead of the others. They are computed along, so
                that numbers of the others are rounded as they were when all were at this step, but
                nothing of it reaches them.
            recorder: how steps are recorded; by default as CUDA graphs, or not at all.
        """
        self.states = list(states)
        self.trained = [state for state in states if state not in passengers]
        self._experiment = states[0].experiment
        self._losses = [_Loss(state.experiment) for state in states]
        self._parameters, self._buffers = stack_module_state(self._losses)
        self._optimiser = self._experiment.optimiser_of(self._parameters.values())
        self._gather_optimisers()
        self._drawing = DrawingAhead(self._experiment.task, self._experiment.predictor)
        if recorder is None and self._experiment.config.graphs:
            recorder = CudaRecorder()
        self._repeated = None if recorder is None else Repeated(self._step, recorder)

    def step(
        self, batches: Sequence[Any], number: int, learning_rate: float
    ) -> Float[Tensor, "runs"]:
        """Do a step of each run with its batch; their losses before it."""
        set_learning_rate(self._optimiser, learning_rate)
        self._batch = batches[0]
        inputs = self._joined(batches, number)
        return self._step(inputs) if self._repeated is None else self._repeated(inputs)

    def _step(self, inputs: Inputs) -> Tensor:
        names = vars(self._batch)
        tensors = {name: inputs[name] for name in names}
        drawn = [tensor for name, tensor in inputs.items() if name not in names]
        self._optimiser.zero_grad(set_to_none=True)
        losses = torch.vmap(self._loss_of_one)(self._parameters, self._buffers, tensors, drawn)
        losses.sum().backward()
        self._optimiser.step()
        return losses.detach()

    def _loss_of_one(
        self,
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        tensors: dict[str, Tensor],
        drawn: list[Tensor],
    ) -> Tensor:
        batch = replace(self._batch, **tensors)
        generator = Drawn(drawn) if self._experiment.is_random else None
        loss: Tensor = functional_call(self._losses[0], (parameters, buffers), (batch, generator))
        return loss

    def _joined(self, batches: Sequence[Any], number: int) -> Inputs:
        """The batches and what is drawn for them, with the runs along a new first axis."""
        inputs: Inputs = {}
        for name in vars(batches[0]):
            tensors = [getattr(batch, name) for batch in batches]
            inputs[name] = _stacked(tensors, _largest_shape(tensors))
        generators = [state.experiment.sampling(number) for state in self.states]
        if generators[0] is not None:
            padded = replace(batches[0], **{name: tensor[0] for name, tensor in inputs.items()})
            drawn = [
                [request.draw(generator) for request in self._drawing.requests(batch)]
                for batch, generator in zip(batches, generators, strict=True)
                if generator is not None
            ]
            for place, request in enumerate(self._drawing.requests(padded)):
                # A batch with few points may need no sample of neighbours: all of them count.
                own = [draws[place] if place < len(draws) else None for draws in drawn]
                tensor = torch.stack([_completed(numbers, request) for numbers in own])
                inputs[f"drawn {place}"] = send(tensor, self._experiment.device)
        return inputs

    # ---- from the runs and back to them

    def _gather_optimisers(self) -> None:
        """Adam's averages, stacked; its count of steps is the same for all that are trained."""
        own = [list(state.experiment.model.parameters()) for state in self.states]
        first = self.trained[0]
        for number, stacked in enumerate(self._parameters.values()):
            kept = first.optimiser.state.get(own[self.states.index(first)][number])
            if kept is None:
                return  # no step has been done
            rows = [
                state.optimiser.state[parameters[number]]
                for state, parameters in zip(self.states, own, strict=True)
            ]
            self._optimiser.state[stacked] = {
                name: value.clone() if name == "step" else torch.stack([row[name] for row in rows])
                for name, value in kept.items()
            }

    @torch.no_grad()
    def hand_back(self) -> None:
        """Give each run that was trained its weights and the state of its optimiser."""
        for row, (state, loss) in enumerate(zip(self.states, self._losses, strict=True)):
            if state not in self.trained:
                continue
            for name, parameter in loss.named_parameters():
                stacked = self._parameters[name]
                parameter.copy_(stacked[row])
                kept = self._optimiser.state.get(stacked, {})
                if kept:
                    state.optimiser.state[parameter] = {
                        key: value.clone() if key == "step" else value[row].clone()
                        for key, value in kept.items()
                    }


class _Loss(nn.Module):
    """The training loss as a module, whose parameters can be given from outside."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self._experiment = experiment
        self.predictor = experiment.predictor

    def forward(self, batch: Any, generator: torch.Generator | None) -> Tensor:
        return self._experiment.loss_with(batch, generator)


def _largest_shape(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    return tuple(max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True))


def _completed(numbers: Tensor | None, request: Request) -> Tensor:
    """Numbers that were drawn for a smaller batch, with others for its padding.

    Those have no effect, but must be such as can be drawn: a rotation cannot be made of zeros.
    """
    if numbers is not None and tuple(numbers.shape) == request.shape:
        return numbers
    completed = request.draw(stream(0, "padding"))
    if numbers is not None:
        completed[tuple(slice(size) for size in numbers.shape)] = numbers
    return completed


def _stacked(tensors: Sequence[Tensor], shape: tuple[int, ...]) -> Tensor:
    return torch.stack([enlarged(tensor, shape) for tensor in tensors])
