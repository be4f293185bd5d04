"""One step of training: the loss of a batch, its gradient, and the optimiser's move."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lietransformer.rng import Drawn
from lietransformer.training.cuda_graphs import CudaRecorder, Inputs, Recorder, Repeated
from lietransformer.training.experiment import Experiment
from lietransformer.training.optimiser import set_learning_rate
from lietransformer.training.random_buffers import DrawingAhead


class TrainingStep:
    """What is done with each batch; repeated as a CUDA graph where the settings say so."""

    def __init__(
        self,
        experiment: Experiment,
        optimiser: torch.optim.Optimizer,
        recorder: Recorder | None = None,
    ) -> None:
        """Prepare the step.

        Args:
            experiment: whose model is trained.
            optimiser: of its parameters.
            recorder: how a step is recorded; by default as a CUDA graph, or not at all.
        """
        self._experiment = experiment
        self._optimiser = optimiser
        self._repeated: Repeated | None = None
        if recorder is None and experiment.config.graphs:
            recorder = CudaRecorder()
        if recorder is not None:
            self._drawing = DrawingAhead(experiment.task, experiment.predictor)
            self._repeated = Repeated(self._step_of_inputs, recorder)

    def __call__(self, batch: Any, step: int, learning_rate: float) -> Tensor:
        """Do a step; the loss before it, which nobody has waited for."""
        set_learning_rate(self._optimiser, learning_rate)
        generator = self._experiment.sampling(step)
        if self._repeated is None:
            return self._step(batch, generator)
        self._batch = batch
        inputs = dict(vars(batch))
        if generator is not None:
            inputs |= self._drawing.inputs(batch, generator, self._experiment.device)
        return self._repeated(inputs)

    def _step_of_inputs(self, inputs: Inputs) -> Tensor:
        """The same as a function of tensors."""
        names = vars(self._batch)
        batch = replace(self._batch, **{name: inputs[name] for name in names})
        drawn = [tensor for name, tensor in inputs.items() if name not in names]
        return self._step(batch, Drawn(drawn) if self._experiment.is_random else None)

    def _step(self, batch: Any, generator: torch.Generator | None) -> Tensor:
        self._optimiser.zero_grad(set_to_none=True)
        loss = self._experiment.loss_with(batch, generator)
        loss.backward()
        self._optimiser.step()
        return loss.detach()
