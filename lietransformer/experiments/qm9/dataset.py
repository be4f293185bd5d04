"""From a source of molecules to the dataset file."""

import json
from pathlib import Path

import numpy as np

from lietransformer.data.download import (
    fetch,
    is_url,
    require_checksum,
)
from lietransformer.data.splits import random_split
from lietransformer.data.writer import create_dataset
from lietransformer.experiments.qm9.plan import FIGSHARE, QM9Config
from lietransformer.experiments.qm9.properties import (
    ELEMENTS,
    PROPERTIES,
    atomic_references,
    in_table_units,
)
from lietransformer.experiments.qm9.sources.molecules import Molecules
from lietransformer.experiments.qm9.sources.package import PACKAGE, read_package
from lietransformer.experiments.qm9.sources.tarball import read_tarball

KIND = "qm9"
_FIGSHARE_URL = "https://ndownloader.figshare.com/files/3195389"
_FIGSHARE_CHECKSUM = "md5:ad1ebd51ee7f5b3a6e32e974e5d54012"


def generate(config: QM9Config, path: Path) -> None:
    """Write molecules, targets, split and the targets' training statistics."""
    molecules = _read(config, path.parent).require_sound(config.source)
    if config.limit is not None:
        molecules = molecules.first(config.limit)
    count = len(molecules.index)
    split = random_split(
        count, train=config.train, test=int(config.test_fraction * count), seed=config.seed
    )
    targets = in_table_units(molecules.properties, molecules.element_counts())
    names = json.dumps([prop.name for prop in PROPERTIES])
    units = json.dumps([prop.unit for prop in PROPERTIES], ensure_ascii=False)
    described = {"names": names, "units": units}
    with create_dataset(
        path, kind=KIND, config=config.model_dump(mode="json"), seed=config.seed
    ) as file:
        file.write("molecules/index", molecules.index)
        file.write("molecules/offsets", molecules.offsets)
        file.write("molecules/smiles", np.array(molecules.smiles, dtype=np.bytes_))
        file.write("molecules/targets", targets, **described)
        file.write("atoms/charges", molecules.charges)
        file.write("atoms/positions", molecules.positions, units="Å")
        for name, rows in split.items():
            file.write(f"split/{name}", molecules.index[rows])
        training = targets[split["train"]]
        file.write("statistics/train_mean", training.mean(axis=0), **described)
        file.write("statistics/train_std", training.std(axis=0), **described)
        file.write(
            "statistics/atomic_references",
            atomic_references(),
            elements=json.dumps(list(ELEMENTS)),
            **described,
        )


def _read(config: QM9Config, folder: Path) -> Molecules:
    if config.source == PACKAGE:
        return read_package()
    if config.source == FIGSHARE:
        return read_tarball(fetch(_FIGSHARE_URL, _FIGSHARE_CHECKSUM, folder))
    if is_url(config.source):
        assert config.checksum is not None  # the configuration insists on it
        return read_tarball(fetch(config.source, config.checksum, folder))
    archive = Path(config.source).expanduser()
    if config.checksum is not None:
        require_checksum(archive, config.checksum)
    return read_tarball(archive)
