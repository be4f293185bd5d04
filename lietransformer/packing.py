"""Padded sets as rows of their real elements, one example after the other.

Maps that act on each element by itself need not see padding: in a random batch of QM9 that is more
than a quarter of all elements, in constellations half.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from lietransformer.checkpointing import can_be_split


@dataclass(frozen=True, eq=False)
class Packing:
    """Which elements are real, and the way from padded features to rows and back.

    Attributes:
        mask: of the real elements.
        places: of the real elements among all, counted through the batch.
    """

    mask: Bool[Tensor, "batch g"]
    places: Int[Tensor, " real"]

    @staticmethod
    def of(mask: Bool[Tensor, "batch g"]) -> "Packing | None":
        """The packing of a batch; None where it has no padding, or cannot be packed.

        The number of rows depends on the mask. Finding it would synchronise with a GPU, and
        neither torch.compile nor torch.func can trace it.
        """
        if mask.device.type != "cpu" or not can_be_split() or bool(mask.all()):
            return None
        return Packing(mask, mask.flatten().nonzero()[:, 0])

    def pack(self, padded: Float[Tensor, "batch g *rest"]) -> Float[Tensor, "1 real *rest"]:
        """The rows of the real elements, as one long example."""
        return padded.flatten(0, 1).index_select(0, self.places)[None]

    def unpack(self, rows: Float[Tensor, "1 real *rest"]) -> Float[Tensor, "batch g *rest"]:
        """Each row at its place, zeros at the others."""
        empty = rows.new_zeros(self.mask.numel(), *rows.shape[2:])
        return empty.index_copy(0, self.places, rows[0]).unflatten(0, self.mask.shape)
