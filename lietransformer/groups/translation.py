"""T(n), the translations of Rⁿ."""

from jaxtyping import Float
from torch import Tensor

from lietransformer.groups.base import PairFeatures
from lietransformer.groups.semidirect import Semidirect
from lietransformer.groups.trivial import Trivial


class Translation(Semidirect):
    """ν[log(t)] = t (App. F); the stabiliser is {e}, so the lift is exact: x ↦ t_x."""

    def __init__(self, dimension: int) -> None:
        super().__init__(f"T({dimension})", Trivial(dimension))

    def pair_coordinates(
        self,
        g: Float[Tensor, "*#a m m"],
        g_prime: Float[Tensor, "*#a m m"],
        kind: PairFeatures = "log",
    ) -> Float[Tensor, "*a coordinates"]:
        # Without the detour over pairs of matrices, which costs (n+1)² numbers per pair.
        return self.translation_part(g_prime) - self.translation_part(g)
