"""QM9: the real data, all of it."""

import csv
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lietransformer.data.augmentation import augment
from lietransformer.data.reader import DatasetFile
from lietransformer.experiments.qm9.examples import MoleculeExamples
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES, atomic_references
from lietransformer.experiments.qm9.sources.package import read_package
from lietransformer.reference import qm9_uncharacterized
from tests.cases import seeded

HARTREE = 27211.4  # meV


def distances(positions: Tensor) -> Tensor:
    return (positions[..., :, None, :] - positions[..., None, :, :]).norm(dim=-1)


def row_of(file: DatasetFile, number: int) -> int:
    return int(np.searchsorted(file.array("molecules/index"), number))


def atoms_of(file: DatasetFile, row: int) -> slice:
    offsets = file.array("molecules/offsets")
    return slice(int(offsets[row]), int(offsets[row + 1]))


def targets_of(file: DatasetFile, number: int) -> dict[str, float]:
    values = file.array("molecules/targets")[row_of(file, number)]
    return {prop.name: value for prop, value in zip(PROPERTIES, values, strict=True)}


def formula_of(file: DatasetFile, number: int) -> dict[str, int]:
    charges = file.array("atoms/charges")[atoms_of(file, row_of(file, number))]
    return {s: int((charges == z).sum()) for s, z in ELEMENTS.items() if (charges == z).any()}


def test_counts(real_qm9: DatasetFile, qm9_file: Path) -> None:
    index, offsets = real_qm9.array("molecules/index"), real_qm9.array("molecules/offsets")
    assert len(index) == 130_831
    assert (index.min(), index.max()) == (1, 133_885)
    assert (np.diff(index) > 0).all()
    sizes = np.diff(offsets)
    assert (sizes.min(), sizes.max(), sizes.sum()) == (3, 29, 2_359_210)
    assert len(real_qm9.array("atoms/charges")) == offsets[-1]
    assert real_qm9.array("atoms/positions").shape == (offsets[-1], 3)
    assert real_qm9.array("molecules/targets").shape == (130_831, 12)
    assert qm9_file.stat().st_size <= 80e6


def test_the_excluded_molecules_are_those_that_failed_the_check(real_qm9: DatasetFile) -> None:
    """What the package leaves out and what our list leaves out of the archive are the same."""
    missing = set(range(1, 133_886)) - set(real_qm9.array("molecules/index").tolist())
    assert missing == qm9_uncharacterized()
    assert len(missing) == 3_054


def test_the_split_is_disjoint_and_complete(real_qm9: DatasetFile) -> None:
    parts = [real_qm9.array(f"split/{name}") for name in ("train", "validation", "test")]
    assert [len(part) for part in parts] == [100_000, 17_748, 13_083]
    everything = np.sort(np.concatenate(parts))
    np.testing.assert_array_equal(everything, real_qm9.array("molecules/index"))


def test_the_split_is_cormorants(real_qm9: DatasetFile) -> None:
    order = np.random.RandomState(0).permutation(130_831)
    index = real_qm9.array("molecules/index")
    np.testing.assert_array_equal(real_qm9.array("split/train"), index[order[:100_000]])
    np.testing.assert_array_equal(real_qm9.array("split/test"), index[order[-13_083:]])


# As published by QM9's authors, in hartree, debye, bohr and cal/mol/K.
KNOWN = {
    "ammonia": (
        2,
        {"N": 1, "H": 3},
        {"mu": 1.6256, "alpha": 9.46, "homo": -0.257, "lumo": 0.0829, "gap": 0.3399}
        | {"r2": 26.1563, "zpve": 0.034358, "Cv": 6.316},
        {"U0": -56.525887, "U": -56.523026, "H": -56.522082, "G": -56.544961},
    ),
    "methane": (
        1,
        {"C": 1, "H": 4},
        {"mu": 0.0, "alpha": 13.21, "homo": -0.3877, "lumo": 0.1171, "gap": 0.5048}
        | {"r2": 35.3641, "zpve": 0.044749, "Cv": 6.469},
        {"U0": -40.47893, "U": -40.476062, "H": -40.475117, "G": -40.498597},
    ),
    "water": (
        3,
        {"O": 1, "H": 2},
        {"mu": 1.8511, "alpha": 6.31, "homo": -0.2928, "lumo": 0.0687, "gap": 0.3615}
        | {"r2": 19.0002, "zpve": 0.021375, "Cv": 6.002},
        {"U0": -76.404702, "U": -76.401867, "H": -76.400922, "G": -76.422349},
    ),
    "benzene": (
        214,
        {"C": 6, "H": 6},
        {"mu": 0.0, "alpha": 57.28, "homo": -0.2475, "lumo": 0.0029, "gap": 0.2503}
        | {"r2": 456.6788, "zpve": 0.100175, "Cv": 17.214},
        {"U0": -232.164586, "U": -232.160188, "H": -232.159244, "G": -232.192047},
    ),
}
# Energies of single atoms, as published with them, in hartree.
ATOMS = {
    "U0": {"H": -0.500273, "C": -37.846772, "N": -54.583861, "O": -75.064579, "F": -99.718730},
    "U": {"H": -0.498857, "C": -37.845355, "N": -54.582445, "O": -75.063163, "F": -99.717314},
    "H": {"H": -0.497912, "C": -37.844411, "N": -54.581501, "O": -75.062219, "F": -99.716370},
    "G": {"H": -0.510927, "C": -37.861317, "N": -54.598897, "O": -75.079532, "F": -99.733544},
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_molecules_by_value(real_qm9: DatasetFile, name: str) -> None:
    number, formula, values, energies = KNOWN[name]
    assert formula_of(real_qm9, number) == formula
    targets = targets_of(real_qm9, number)
    for key in ("mu", "alpha", "r2"):
        assert targets[key] == pytest.approx(values[key], abs=1e-9)
    for key in ("homo", "lumo", "gap", "zpve"):
        assert targets[key] == pytest.approx(HARTREE * values[key], rel=1e-12)
    assert targets["Cv"] == pytest.approx(values["Cv"] - 2.981 * sum(formula.values()), abs=1e-9)
    for key, energy in energies.items():
        binding = energy - sum(ATOMS[key][symbol] * n for symbol, n in formula.items())
        assert targets[key] == pytest.approx(HARTREE * binding, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "experiment"), [("methane", 392.5), ("water", 219.3), ("benzene", 1306)]
)
def test_atomisation_energies_are_those_of_nature(
    real_qm9: DatasetFile, name: str, experiment: float
) -> None:
    """At 0 K, measured in kcal/mol; the density functional of QM9 is a few per cent off."""
    energy = targets_of(real_qm9, KNOWN[name][0])["U0"]
    assert -energy / 1000 * 23.0605 == pytest.approx(experiment, rel=0.04)


def test_every_molecule_is_bound(real_qm9: DatasetFile) -> None:
    """A forgotten or misplaced reference would make some energy huge or positive."""
    for name in ("U0", "U", "H", "G"):
        column = [prop.name for prop in PROPERTIES].index(name)
        values = real_qm9.array("molecules/targets")[:, column]
        assert values.max() < -8_000
        assert values.min() > -120_000


def test_geometry_of_known_molecules(real_qm9: DatasetFile) -> None:
    """Bond lengths in Å: C–H of methane, O–H of water, C–C of benzene."""

    def between_atoms(number: int) -> np.ndarray:
        atoms = atoms_of(real_qm9, row_of(real_qm9, number))
        return distances(torch.from_numpy(real_qm9.array("atoms/positions")[atoms].copy())).numpy()

    np.testing.assert_allclose(between_atoms(1)[0, 1:], 1.092, atol=0.002)
    np.testing.assert_allclose(between_atoms(3)[0, 1:], 0.962, atol=0.002)
    ring = between_atoms(214)[:6, :6]
    np.testing.assert_allclose(np.sort(ring, axis=1)[:, 1:3], 1.395, atol=0.003)


def test_atom_counts_against_the_molecular_formulas(real_qm9: DatasetFile) -> None:
    """Every molecule against the formula in its InChI, which the generator does not read."""
    package = importlib.util.find_spec("qm9pack")
    assert package is not None
    assert package.submodule_search_locations
    formulas: dict[int, dict[str, int]] = {}
    for path in sorted(Path(package.submodule_search_locations[0]).glob("data/qm9_part*.csv")):
        with open(path, newline="") as file:
            for line in csv.DictReader(file):
                formulas[int(line["Index"])] = formula_of_inchi(line["InChi"])
    charges, offsets = real_qm9.array("atoms/charges"), real_qm9.array("molecules/offsets")
    counts = {
        symbol: np.add.reduceat(charges == charge, offsets[:-1], dtype=int)
        for symbol, charge in ELEMENTS.items()
    }
    for row, number in enumerate(real_qm9.array("molecules/index").tolist()):
        found_here = {symbol: int(n[row]) for symbol, n in counts.items() if n[row]}
        assert found_here == formulas[number], number


def formula_of_inchi(text: str) -> dict[str, int]:
    """The layer of the formula, and protons added (/p+1) or taken away (/p-1)."""
    parts = re.findall(r"([A-Z][a-z]?)(\d*)", text.split("/")[1])
    formula = {symbol: int(n or 1) for symbol, n in parts}
    protons = re.search(r"/p([+-]\d+)", text)
    if protons is not None:
        formula["H"] = formula.get("H", 0) + int(protons[1])
    return formula


def test_nothing_is_missing_or_not_a_number(real_qm9: DatasetFile) -> None:
    for name in real_qm9.names:
        array = real_qm9.array(name)
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), name
    assert set(np.unique(real_qm9.array("atoms/charges"))) == set(ELEMENTS.values())
    assert (real_qm9.array("molecules/smiles") != b"").all()


def test_atoms_do_not_overlap(real_qm9: DatasetFile) -> None:
    """A shift by one atom anywhere would bring atoms of different molecules together."""
    examples = MoleculeExamples(real_qm9, "test", dtype=torch.float64)
    batch = examples.take(np.arange(2_000))
    distance = distances(batch.positions)
    pairs = batch.mask[:, :, None] & batch.mask[:, None]
    pairs &= ~torch.eye(pairs.shape[1], dtype=torch.bool)
    assert distance[pairs].min() > 0.9
    nearest = torch.where(pairs, distance, torch.inf).amin(dim=2)
    assert nearest[batch.mask].max() < 1.7  # every atom is bonded to some other


def test_references_of_every_element() -> None:
    table = atomic_references()
    assert table.shape == (5, 12)
    for column, prop in enumerate(PROPERTIES):
        expected = np.zeros(5)
        if prop.name in ATOMS:
            expected = np.array([HARTREE * ATOMS[prop.name][symbol] for symbol in ELEMENTS])
        elif prop.name == "Cv":
            expected = np.full(5, 2.981)
        np.testing.assert_allclose(table[:, column], expected, rtol=1e-12)


def test_training_statistics(real_qm9: DatasetFile) -> None:
    training = np.isin(real_qm9.array("molecules/index"), real_qm9.array("split/train"))
    values = real_qm9.array("molecules/targets")[training]
    np.testing.assert_allclose(real_qm9.array("statistics/train_mean"), values.mean(axis=0))
    np.testing.assert_allclose(real_qm9.array("statistics/train_std"), values.std(axis=0))


def test_columns_are_named(real_qm9: DatasetFile) -> None:
    names = '["alpha", "gap", "homo", "lumo", "mu", "Cv", "G", "H", "r2", "U", "U0", "zpve"]'
    assert real_qm9.attribute("molecules/targets", "names") == names
    assert real_qm9.attribute("molecules/targets", "units").count("meV") == 8


def test_total_energies_can_be_recovered(real_qm9: DatasetFile) -> None:
    """The references are stored: adding them gives back the published energy."""
    references = real_qm9.array("statistics/atomic_references")
    for number, formula, _, energies in KNOWN.values():
        counts = np.array([formula.get(symbol, 0) for symbol in ELEMENTS])
        for column, prop in enumerate(PROPERTIES):
            if prop.name in energies:
                total = targets_of(real_qm9, number)[prop.name] + counts @ references[:, column]
                assert total / HARTREE == pytest.approx(energies[prop.name], abs=1e-9)


def test_distances_survive_the_file_and_any_motion(real_qm9: DatasetFile) -> None:
    """From the source through the file, a rotation and a translation: every distance remains."""
    source = read_package()
    examples = MoleculeExamples(real_qm9, "train", dtype=torch.float64)
    batch = examples.take(np.arange(500))
    moved = augment(batch.positions, "SO3", generator=seeded())
    assert (moved - batch.positions)[batch.mask].abs().max() > 1
    for number, size, positions in zip(batch.index, batch.mask.sum(dim=1), moved, strict=True):
        row = int(np.searchsorted(source.index, int(number)))
        original = torch.from_numpy(source.positions[source.offsets[row] : source.offsets[row + 1]])
        assert len(original) == size
        torch.testing.assert_close(distances(positions[:size]), distances(original))
