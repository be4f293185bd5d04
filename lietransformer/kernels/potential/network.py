"""A potential from the numbers of its locations on, and its derivatives, in C."""

import ctypes
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.kernels.calling import call
from lietransformer.kernels.potential.parameters import Parameters

# Rows of a chunk: few enough for what a layer leaves for the next one to stay in the cache of a
# core, and enough for the weights to be read from memory rarely. The number of chunks is a multiple
# of so many, for as many threads to have equal work.
_ROWS_OF_A_CHUNK = 150
_CHUNKS = 4


@dataclass(frozen=True, eq=False)
class Sums:
    """∂V̇/∂(all that does not depend on positions), added up over states.

    Attributes:
        parameters: for each chunk of the batch, by `struct parameters`.
        features: by the features of elements at the first layer.
        prepared: by what else the first layer is given.
    """

    parameters: Float[Tensor, "chunks parameters"]
    features: Float[Tensor, "elements row"]
    prepared: Tensor


@dataclass(frozen=True, eq=False)
class Network:
    """The passes through all layers, for the features of a batch.

    Attributes:
        code: `transformer.c` or `convolution.c`.
        parameters: of the model.
        column_of_pair: of each pair of elements, its column among the numbers of locations.
        columns: how many columns an example has.
        features: of elements at the first layer, as rows.
        prepared: what else of them the first layer is given.
        examples: size of the batch.
    """

    code: ctypes.CDLL
    parameters: Parameters
    column_of_pair: Tensor
    columns: int
    features: Float[Tensor, "elements row"]
    prepared: Tensor
    examples: int
    # Calls share the memory that they need for a moment, and C code runs beside other threads.
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def first_order(
        self, locations: Float[Tensor, "heads outputs columns"], *, keep: bool
    ) -> tuple[Float[Tensor, "heads outputs columns"], Tensor]:
        """∂V/∂l for the numbers l of locations, and what `second_order` needs of the state.

        Args:
            locations: l.
            keep: whether `second_order` is to follow.
        """
        chunks = -(-self.examples // self._chunk)
        stored = locations.new_empty(chunks if keep else self._threads, self._stored_size)
        by_locations = torch.empty_like(locations)
        given = (*self._model, self.features, self.prepared, locations)
        with self._one_at_a_time:
            call(self.code.first_order, *given, int(keep), stored, self._scratch, by_locations)
        return by_locations, stored

    def second_order(
        self,
        stored: Tensor,
        tangent: Float[Tensor, "heads outputs columns"],
        sums: Sums,
    ) -> Float[Tensor, "heads outputs columns"]:
        """∂V̇/∂l for the tangent of l.

        Args:
            stored: of the state.
            tangent: of l.
            sums: what the other derivatives of V̇ are added to.
        """
        by_locations = torch.empty_like(tangent)
        given = (*self._model, self.prepared, stored)
        added_to = (sums.parameters, sums.features, sums.prepared)
        with self._one_at_a_time:
            call(self.code.second_order, *given, self._scratch, tangent, by_locations, *added_to)
        return by_locations

    def new_sums(self) -> Sums:
        """Zeros."""
        chunks = -(-self.examples // self._chunk)
        return Sums(
            self.features.new_zeros(chunks, len(self.parameters.packed)),
            torch.zeros_like(self.features),
            torch.zeros_like(self.prepared),
        )

    @property
    def _model(self) -> tuple[int | Tensor, ...]:
        """What both functions begin with."""
        sizes = (self.examples, self._chunk, self._threads, self.columns)
        return (*sizes, self.column_of_pair, self.parameters.packed, self.parameters.transposes)

    @cached_property
    def _chunk(self) -> int:
        """Examples of a chunk. It does not depend on threads, so that no sum does."""
        parts = _CHUNKS * -(-len(self.features) // (_CHUNKS * _ROWS_OF_A_CHUNK))
        return -(-self.examples // parts)

    @cached_property
    def _threads(self) -> int:
        return torch.get_num_threads()

    @cached_property
    def _stored_size(self) -> int:
        return self._size(self.code.stored_size)

    @cached_property
    def _scratch(self) -> Tensor:
        return self.features.new_empty(self._threads, self._size(self.code.scratch_size))

    def _size(self, function: Any) -> int:
        function.restype = ctypes.c_long
        return int(function(ctypes.c_long(self._chunk)))
