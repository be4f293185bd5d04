"""A small archive in the format of dsgdb9nsd.xyz.tar.bz2, made of molecules of the package.

With the peculiarities of the original: tabs, a blank after a tab, a trailing tab, and small
numbers written as in 8.7*^-6.
"""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lietransformer.experiments.qm9.properties import ELEMENTS, PROPERTIES
from lietransformer.experiments.qm9.sources.molecules import Molecules

SYMBOLS = {charge: symbol for symbol, charge in ELEMENTS.items()}
COLUMNS = ("mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "U0", "U", "H", "G", "Cv")


def number(value: float) -> str:
    text = repr(float(value))
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}*^{int(power)}" if exponent else text


def xyz_text(molecules: Molecules, row: int) -> str:
    atoms = slice(molecules.offsets[row], molecules.offsets[row + 1])
    by_name = dict(zip([p.name for p in PROPERTIES], molecules.properties[row], strict=True))
    properties = "\t".join(["157.7", "157.7", "157.7", *(number(by_name[c]) for c in COLUMNS)])
    lines = [f"{molecules.sizes[row]}", f"gdb {molecules.index[row]}\t{properties}\t"]
    for charge, position in zip(molecules.charges[atoms], molecules.positions[atoms], strict=True):
        coordinates = "\t ".join(number(x) for x in position)
        lines.append(f"{SYMBOLS[int(charge)]}\t{coordinates}\t-0.535689")
    lines += ["1341.307\t1562.6731", f"{molecules.smiles[row]}\t{molecules.smiles[row]}\t"]
    lines += ["InChI=1S/CH4/h1H4\tInChI=1S/CH4/h1H4"]
    return "\n".join(lines) + "\n"


def write_archive(path: Path, texts: dict[int, str], more: Sequence[str] = ()) -> None:
    """An archive of these files, numbered; the last ones first, and others with other names."""
    with tarfile.open(path, "w:bz2") as archive:
        named = {f"dsgdb9nsd_{n:06d}.xyz": texts[n] for n in sorted(texts, reverse=True)}
        for name, text in (named | dict.fromkeys(more, "not a molecule")).items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def with_small_numbers(molecules: Molecules) -> Molecules:
    """Molecules some of whose coordinates need an exponent."""
    positions = np.array(molecules.positions)
    positions[::7, 0] *= 1e-6
    return Molecules(
        molecules.index,
        molecules.sizes,
        molecules.smiles,
        molecules.properties,
        molecules.charges,
        positions,
    )
