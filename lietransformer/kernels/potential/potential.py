"""∂V/∂q of a model, differentiable by positions and parameters."""

import threading
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from lietransformer.kernels import head_mlp
from lietransformer.kernels.potential.conditions import Model, code_for, takes
from lietransformer.kernels.potential.coordinates import PairCoordinates
from lietransformer.kernels.potential.network import Network, Sums
from lietransformer.kernels.potential.parameters import Parameters


class Potential:
    """V for the features of a batch, as a function of positions.

    What does not depend on positions is computed here, once for all states of a trajectory.

    Args:
        model: V. That it can be used has been asked of `applies`.
        features: of the points; not differentiated by.
    """

    def __init__(self, model: Model, features: Float[Tensor, "batch points d"]) -> None:
        self._registers = [module._parameters for module in model.modules()]
        self._circumstances = _circumstances(self._registers)
        self._shape = batch, points, _ = features.shape
        self.pairs = PairCoordinates.of(model.config, points)
        elements = points * self.pairs.samples
        kind = code_for(model.config)
        assert kind is not None
        # The first layer's features do not depend on positions: PyTorch computes them.
        rows, prepared = kind.inputs(model, self.pairs.lifted(features).flatten(0, 1), elements)
        # Layers see positions through numbers of locations only, and those of all layers are
        # functions of the same coordinates of pairs: they are computed for all layers at once.
        mlps = kind.mlps(model)
        self._mlps = torch.cat([head_mlp.packed(mlp) for mlp in mlps])
        location = head_mlp.find(mlps[0])
        code = kind.load(model.config, elements)
        assert location is not None
        assert code is not None
        self.location = location
        self.network = Network(
            code,
            Parameters(list(kind.fields(model, elements))),
            self.pairs.column_of_pair,
            self.pairs.columns,
            rows.detach(),
            prepared.detach(),
            batch,
        )
        self.sums = _SumsOfPass(self.network)
        self._token: Tensor = _FromAllStates.apply(  # type: ignore[no-untyped-call]
            self, kind.output_bias(model), rows, prepared, *self.network.parameters.tensors
        )

    def serves(self, positions: Tensor) -> bool:
        """Whether it is that of these positions: for as many points, and the same parameters."""
        return (
            takes(positions)
            and positions.shape[:-1] == self._shape[:-1]
            and self._circumstances == _circumstances(self._registers)
        )

    def gradient(
        self, positions: Float[Tensor, "batch points space"]
    ) -> Float[Tensor, "batch points space"]:
        """∂V/∂q, which can be differentiated once."""
        given = (positions, self._mlps, self._token)
        keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
        result: Tensor = _PotentialGradient.apply(self, keep, *given)  # type: ignore[no-untyped-call]
        return result


class _PotentialGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        potential: Potential,
        keep: bool,
        positions: Tensor,
        mlps: Tensor,
        token: Tensor,
    ) -> Tensor:
        pairs, location = potential.pairs, potential.location
        x = pairs.at(positions)
        locations, jacobian = location.value_and_jacobian(x, mlps)
        by_locations, stored = potential.network.first_order(locations, keep=keep)
        ctx.potential, ctx.x, ctx.jacobian = potential, x, jacobian
        ctx.by_locations, ctx.stored = by_locations, stored
        ctx.save_for_backward(positions, mlps, token)
        return pairs.pull_back(location.pull_back(jacobian, by_locations))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, direction: Tensor) -> tuple[Tensor | None, ...]:
        _, mlps, token = ctx.saved_tensors  # raises if one has been changed in place since
        potential: Potential = ctx.potential
        pairs, location, network = potential.pairs, potential.location, potential.network
        x_tangent = pairs.tangent(direction)
        tangent = location.push_forward(ctx.jacobian, x_tangent)
        by_locations = network.second_order(ctx.stored, tangent, potential.sums.now())
        by_x, by_mlps = location.second(ctx.x, mlps, x_tangent, ctx.by_locations, by_locations)
        by_position = pairs.pull_back(by_x)
        return None, None, by_position, by_mlps, torch.zeros_like(token)


class _FromAllStates(torch.autograd.Function):
    """Stands between a potential and what it has of the parameters in PyTorch's graph.

    Its gradient is asked for when those of all states have been computed. So they can be added up
    in one place, instead of one set of them for each state.
    """

    @staticmethod
    def forward(ctx: Any, potential: Potential, unused: Tensor, *used: Tensor) -> Tensor:
        ctx.potential = potential
        ctx.save_for_backward(unused, *used)
        return unused.new_zeros(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        unused, *_used = ctx.saved_tensors  # raises if one has been changed in place since
        potential: Potential = ctx.potential
        sums = potential.sums.taken()
        by_parameters = potential.network.parameters.unpacked(sums.parameters.sum(dim=0))
        # A constant that is added to V changes no force.
        return (None, torch.zeros_like(unused), sums.features, sums.prepared, *by_parameters)


class _SumsOfPass(threading.local):
    """The sums of a backward pass.

    A pass that goes to positions alone leaves behind what nobody takes: the next one must not add
    to it. Passes of several threads run at the same time.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._pass = -1
        self._sums: Sums | None = None

    def now(self) -> Sums:
        """Those of the present pass: zeros when it begins."""
        present = torch._C._current_graph_task_id()
        if self._sums is None or self._pass != present:
            self._pass, self._sums = present, self._network.new_sums()
        return self._sums

    def taken(self) -> Sums:
        """Those of the present pass, which are not added to any more."""
        sums, self._sums = self.now(), None
        return sums


def _circumstances(registers: list[dict[str, Any]]) -> tuple[object, ...]:
    """What changes with a parameter, in place or by another one; and whether to differentiate."""
    parameters = (p for register in registers for p in register.values() if p is not None)
    return torch.is_grad_enabled(), *((id(p), p._version) for p in parameters)
