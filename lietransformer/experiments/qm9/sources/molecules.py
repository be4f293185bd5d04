"""Molecules as every source delivers them."""

from dataclasses import dataclass

import numpy as np

from lietransformer.errors import UserError
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES

CHARACTERIZED = 130_831  # molecules of QM9 that passed its authors' consistency check


@dataclass(frozen=True, eq=False)
class Molecules:
    """Molecules in the order of their numbers; atoms of all molecules one after another.

    Attributes:
        index: the number of each molecule in QM9, from 1 to 133,885.
        sizes: number of atoms.
        smiles: as in the source.
        properties: (molecules, 12) in the units of the source.
        charges: nuclear charge of each atom.
        positions: (atoms, 3) in Å.
    """

    index: np.ndarray
    sizes: np.ndarray
    smiles: list[str]
    properties: np.ndarray
    charges: np.ndarray
    positions: np.ndarray

    @property
    def offsets(self) -> np.ndarray:
        """The start of each molecule's atoms, followed by the end of the last."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    def element_counts(self) -> np.ndarray:
        """(molecules, 5): the molecular formulas, in the order of ELEMENTS."""
        molecule = np.repeat(np.arange(len(self.sizes)), self.sizes)
        counts = np.zeros((len(self.sizes), len(ELEMENTS)), dtype=np.int64)
        for column, charge in enumerate(ELEMENTS.values()):
            of_element = molecule[self.charges == charge]
            counts[:, column] = np.bincount(of_element, minlength=len(self.sizes))
        return counts

    def first(self, count: int) -> "Molecules":
        """The first molecules only."""
        atoms = int(self.sizes[:count].sum())
        return Molecules(
            self.index[:count],
            self.sizes[:count],
            self.smiles[:count],
            self.properties[:count],
            self.charges[:atoms],
            self.positions[:atoms],
        )

    def require_sound(self, source: str) -> "Molecules":
        """These molecules, after checks that they can be QM9's."""
        problem = None
        if len(self.index) == 0:
            problem = "no molecules"
        elif not (np.diff(self.index) > 0).all():
            problem = "a molecule that occurs twice"
        elif len(self.positions) != self.sizes.sum() or len(self.charges) != self.sizes.sum():
            problem = "molecules whose atoms do not match their number"
        elif not np.isin(self.charges, list(ELEMENTS.values())).all():
            problem = "an element other than " + ", ".join(ELEMENTS)
        elif not (np.isfinite(self.positions).all() and np.isfinite(self.properties).all()):
            problem = "positions or properties that are not finite"
        if problem is not None:
            raise UserError(
                f"{source} does not hold the molecules of QM9: it has {problem}. Get the source "
                "again; it may be damaged."
            )
        assert self.properties.shape == (len(self.index), len(PROPERTIES))
        return self
