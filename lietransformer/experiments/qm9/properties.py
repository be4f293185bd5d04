"""What is predicted: the 12 properties, their units, and what single atoms contribute."""

from dataclasses import dataclass

import numpy as np

HARTREE = 27.2114e3  # meV, the conversion of the paper's table

# Nuclear charges by symbol; the order is that of the atomic references below.
ELEMENTS: dict[str, int] = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}


@dataclass(frozen=True)
class Property:
    """One column of the paper's Table 2.

    Attributes:
        name: as in the table.
        unit: of the table.
        factor: from the unit of the source to that of the table.
        atomic_reference: what one atom of each element contributes, in the unit of the
            source; the sum over a molecule's atoms is subtracted. None: nothing is.
    """

    name: str
    unit: str
    factor: float = 1.0
    atomic_reference: tuple[float, float, float, float, float] | None = None


PROPERTIES: tuple[Property, ...] = (
    Property("alpha", "bohr³"),
    Property("gap", "meV", HARTREE),
    Property("homo", "meV", HARTREE),
    Property("lumo", "meV", HARTREE),
    Property("mu", "D"),
    Property("Cv", "cal/mol/K", 1.0, (2.981, 2.981, 2.981, 2.981, 2.981)),
    Property("G", "meV", HARTREE, (-0.510927, -37.861317, -54.598897, -75.079532, -99.733544)),
    Property("H", "meV", HARTREE, (-0.497912, -37.844411, -54.581501, -75.062219, -99.716370)),
    Property("r2", "bohr²"),
    Property("U", "meV", HARTREE, (-0.498857, -37.845355, -54.582445, -75.063163, -99.717314)),
    Property("U0", "meV", HARTREE, (-0.500273, -37.846772, -54.583861, -75.064579, -99.718730)),
    Property("zpve", "meV", HARTREE),
)


def atomic_references() -> np.ndarray:
    """What one atom of each element contributes to each property, in the table's units."""
    columns = [
        np.multiply(prop.factor, prop.atomic_reference or (0.0,) * len(ELEMENTS))
        for prop in PROPERTIES
    ]
    return np.stack(columns, axis=1)


def in_table_units(values: np.ndarray, element_counts: np.ndarray) -> np.ndarray:
    """Properties as published, less those of the single atoms, in the table's units.

    Args:
        values: (molecules, 12) in the units of the source (hartree, debye, …).
        element_counts: (molecules, 5), atoms of each element.
    """
    columns = []
    for column, prop in enumerate(PROPERTIES):
        own = values[:, column]
        if prop.atomic_reference is not None:
            # In the source's unit: the difference is small against both terms.
            own = own - element_counts @ np.array(prop.atomic_reference)
        columns.append(prop.factor * own)
    return np.stack(columns, axis=1)
