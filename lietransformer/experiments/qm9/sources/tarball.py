"""QM9 from the original archive of xyz files, dsgdb9nsd.xyz.tar.bz2."""

import re
import tarfile
from pathlib import Path

import numpy as np

from lietransformer.errors import UserError
from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES
from lietransformer.experiments.qm9.sources.molecules import Molecules
from lietransformer.progress import progress
from lietransformer.reference import qm9_uncharacterized

# The second line of a file, after "gdb" and the molecule's number.
_COLUMNS = [
    "A",
    "B",
    "C",
    "mu",
    "alpha",
    "homo",
    "lumo",
    "gap",
    "r2",
    "zpve",
    "U0",
    "U",
    "H",
    "G",
    "Cv",
]
_ORDER = [_COLUMNS.index(prop.name) for prop in PROPERTIES]
_NAME = re.compile(r"(?:.*/)?dsgdb9nsd_(\d{1,6})\.xyz")


def read_tarball(path: Path) -> Molecules:
    """The molecules of an archive, less those that failed the authors' consistency check."""
    excluded = qm9_uncharacterized()
    found: dict[int, _Molecule] = {}
    try:
        with (
            open(path, "rb") as raw,
            progress(
                total=path.stat().st_size, description="reading " + path.name, unit="B"
            ) as bar,
            # As a stream: the archive is read once, from front to back, and never unpacked.
            tarfile.open(fileobj=raw, mode="r|*") as archive,
        ):
            for member in archive:
                name = _NAME.fullmatch(member.name)
                if name is None or not member.isfile() or int(name[1]) in excluded:
                    continue
                if int(name[1]) in found:
                    raise ValueError(f"molecule {int(name[1])} twice")
                file = archive.extractfile(member)
                assert file is not None  # it is a plain file
                found[int(name[1])] = _parse(file.read(), member.name)
                bar.update(raw.tell() - bar.n)
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        raise UserError(
            f"cannot read {path} as an archive of files dsgdb9nsd_NUMBER.xyz: "
            f"{getattr(error, 'strerror', None) or error}. Download it again and check its "
            "checksum."
        ) from error
    molecules = [found[number] for number in sorted(found)]
    return Molecules(
        index=np.array(sorted(found), dtype=np.int32),
        sizes=np.array([len(m.charges) for m in molecules], dtype=np.int32),
        smiles=[m.smiles for m in molecules],
        properties=np.array([m.properties for m in molecules]).reshape(-1, len(PROPERTIES)),
        charges=np.concatenate([[], *(m.charges for m in molecules)]).astype(np.uint8),
        positions=np.concatenate([np.empty((0, 3)), *(m.positions for m in molecules)]),
    )


class _Molecule:
    """One xyz file.

    Its lines: the number of atoms; the properties; one line per atom (symbol, x, y, z, charge);
    frequencies; SMILES; InChI. Columns are separated by tabs or spaces, and some exponents
    are written as in 1.5*^-6.
    """

    def __init__(self, lines: list[str]) -> None:
        size = int(lines[0])
        if size < 1 or len(lines) != size + 5:
            raise ValueError(f"{len(lines)} lines for {size} atoms")
        properties = [_number(text) for text in lines[1].split()[2:]]
        if len(properties) != len(_COLUMNS):
            raise ValueError(f"{len(properties)} properties, not {len(_COLUMNS)}")
        atoms = [line.split() for line in lines[2 : 2 + size]]
        self.properties = [properties[column] for column in _ORDER]
        self.charges = [ELEMENTS[atom[0]] for atom in atoms]
        self.positions = np.array([[_number(x), _number(y), _number(z)] for _, x, y, z, _ in atoms])
        self.smiles = lines[3 + size].split()[0]


def _parse(content: bytes, name: str) -> _Molecule:
    try:
        return _Molecule(content.decode("ascii").rstrip().splitlines())
    except (ValueError, KeyError, IndexError) as error:
        raise ValueError(f"{name}, which is not in the format of QM9 ({error})") from error


def _number(text: str) -> float:
    return float(text.replace("*^", "e"))
