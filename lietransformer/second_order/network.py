"""`potential.c`: a LieTransformer from the scores of its locations on, and its derivatives."""

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lietransformer.models.lie_transformer import LieTransformerConfig
from lietransformer.native import library
from lietransformer.native.calling import call
from lietransformer.second_order.parameters import Parameters, row_length

# Numbers of a row times rows of a chunk: such that what a layer leaves for the next one fits into
# the cache of a core. Chunks are a multiple of so many, for as many threads to have equal work.
_NUMBERS_OF_A_CHUNK = 150 * 160
_CHUNKS = 4


def load(config: LieTransformerConfig, elements: int) -> ctypes.CDLL | None:
    """The code for models of these settings and examples of so many elements; None without C."""
    definitions = {
        "POINTS": elements,
        "LAYERS": config.layers,
        "HEADS": config.heads,
        "HEAD_WIDTH": config.width // config.heads,
        "ROW_LENGTH": row_length(config.width),
    }
    return library.load("potential.c", tuple(definitions.items()))


@dataclass(frozen=True, eq=False)
class Network:
    """The passes through all layers, for the features of a batch.

    Attributes:
        code: what `load` gives.
        parameters: of the model.
        columns: of each pair of elements, its column in the scores of locations.
        column_count: how many columns an example has.
        features: of elements at the first layer, as rows.
        joint: their queries, keys and values, as rows.
        examples: size of the batch.
    """

    code: ctypes.CDLL
    parameters: Parameters
    columns: Tensor
    column_count: int
    features: Float[Tensor, "elements row"]
    joint: Float[Tensor, "elements three_rows"]
    examples: int

    def first_order(
        self, scores: Float[Tensor, "layers_heads 1 columns"], *, keep: bool
    ) -> tuple[Float[Tensor, "layers_heads 1 columns"], Tensor]:
        """∂V/∂l for the scores l of locations, and what `second_order` needs of the state.

        Args:
            scores: l.
            keep: whether `second_order` is to follow.
        """
        chunks = -(-self.examples // self._chunk)
        stored = scores.new_empty(chunks if keep else self._threads, self._stored_size)
        by_scores = torch.empty_like(scores)
        given = (*self._model, self.features, self.joint, scores)
        call(self.code.first_order, *given, int(keep), stored, self._scratch, by_scores)
        return by_scores, stored

    def second_order(
        self,
        stored: Tensor,
        tangent: Float[Tensor, "layers_heads 1 columns"],
        sums: Float[Tensor, "chunks parameters"],
    ) -> tuple[Float[Tensor, "layers_heads 1 columns"], Tensor, Tensor]:
        """∂V̇/∂l, ∂V̇/∂features and ∂V̇/∂joint for the tangent of l.

        Args:
            stored: of the state.
            tangent: of l.
            sums: for each chunk of the batch, to which ∂V̇/∂θ is added.
        """
        found = (
            torch.empty_like(tangent),
            torch.empty_like(self.features),
            torch.empty_like(self.joint),
        )
        by_scores, *by_inputs = found
        given = (*self._model, stored, self._scratch, tangent)
        call(self.code.second_order, *given, by_scores, sums, *by_inputs)
        return found

    def new_sums(self) -> Float[Tensor, "chunks parameters"]:
        """Zeros, for the gradients by parameters."""
        chunks = -(-self.examples // self._chunk)
        return self.features.new_zeros(chunks, len(self.parameters.packed))

    @property
    def _model(self) -> tuple[int | Tensor, ...]:
        """What both functions begin with."""
        sizes = (self.examples, self._chunk, self._threads, self.column_count)
        return (*sizes, self.columns, self.parameters.packed, self.parameters.transposes)

    @cached_property
    def _chunk(self) -> int:
        """Examples of a chunk. It does not depend on threads, so that no sum does."""
        parts = _CHUNKS * -(-self.features.numel() // (_CHUNKS * _NUMBERS_OF_A_CHUNK))
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
