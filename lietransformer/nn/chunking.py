"""When layers have so many pairs that they are looked at in parts."""

from lietransformer.checkpointing import can_be_split
from lietransformer.pairs import PairGeometry

# What one layer may keep of its pairs for the backward pass: half a gigabyte in single precision,
# more than it is for any of the paper's models. Beyond it, computing again is the lesser evil.
_MOST_NUMBERS = 2**27
# Parts are far smaller, so that what they need is soon needed again.
_NUMBERS_AT_ONCE = 2**24


def queries_at_once(geometry: PairGeometry, kept: int) -> int | None:
    """How many queries a layer looks at together; None for all of them.

    Args:
        geometry: all pairs.
        kept: how many numbers of each pair wait for the backward pass.
    """
    batch, count, keys = geometry.coordinates.shape[:3]
    of_a_query = batch * keys * kept
    if count * of_a_query <= _MOST_NUMBERS or not can_be_split():
        return None
    return max(1, _NUMBERS_AT_ONCE // of_a_query)
