"""QM9 from an archive of xyz files, by path and by URL; and sources that are not as expected."""

import hashlib
import http.server
import io
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lietransformer.data.reader import DatasetFile
from lietransformer.errors import UserError
from lietransformer.experiments.qm9.dataset import generate
from lietransformer.experiments.qm9.plan import QM9Config
from lietransformer.experiments.qm9.sources.molecules import Molecules
from lietransformer.experiments.qm9.sources.package import read_package
from lietransformer.experiments.qm9.sources.tarball import read_tarball
from tests.data.test_command import fails_to_write
from tests.experiments.xyz_archive import with_small_numbers, write_archive, xyz_text

SPLIT = {"train": 40, "test_fraction": 0.1}


@pytest.fixture(scope="module")
def molecules() -> Molecules:
    return with_small_numbers(read_package().first(80))


@pytest.fixture(scope="module")
def archive(molecules: Molecules, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 80 molecules, one that failed the consistency check, and other files."""
    texts = {int(n): xyz_text(molecules, row) for row, n in enumerate(molecules.index)}
    assert any("*^-" in text for text in texts.values())
    texts[58] = xyz_text(molecules, 0)  # number 58 is one of those that failed
    path = tmp_path_factory.mktemp("archive") / "dsgdb9nsd.xyz.tar.bz2"
    write_archive(path, texts, more=["readme.txt", "dsgdb9nsd_1.txt"])
    return path


def test_the_archive_gives_the_same_molecules(archive: Path, molecules: Molecules) -> None:
    found = read_tarball(archive)
    assert 58 not in found.index
    assert found.smiles == molecules.smiles
    for name in ("index", "sizes", "properties", "charges", "positions"):
        np.testing.assert_array_equal(getattr(found, name), getattr(molecules, name), name)


def test_from_a_path(archive: Path, tmp_path: Path) -> None:
    config = QM9Config(source=str(archive), checksum=sha256(archive), **SPLIT)
    generate(config, tmp_path / "qm9.h5")
    file = DatasetFile(tmp_path / "qm9.h5", kind="qm9")
    assert len(file.array("molecules/index")) == 80
    assert [len(file.array(f"split/{s}")) for s in ("train", "validation", "test")] == [40, 32, 8]


def sha256(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server(archive: Path) -> Iterator[str]:
    handler = partial(QuietHandler, directory=str(archive.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_from_a_url_once(archive: Path, tmp_path: Path, server: str) -> None:
    md5 = "md5:" + hashlib.md5(archive.read_bytes()).hexdigest()
    config = QM9Config(source=f"{server}/{archive.name}", checksum=md5, **SPLIT)
    generate(config, tmp_path / "one.h5")
    gone = QM9Config(source=f"{server}/gone", checksum=md5, **SPLIT)
    generate(gone, tmp_path / "two.h5")  # from the download beside it
    one, two = (DatasetFile(tmp_path / name) for name in ("one.h5", "two.h5"))
    np.testing.assert_array_equal(one.array("atoms/positions"), two.array("atoms/positions"))


def test_a_download_with_another_checksum_is_thrown_away(
    archive: Path, tmp_path: Path, server: str
) -> None:
    wrong = "sha256:" + "0" * 64
    config = QM9Config(source=f"{server}/{archive.name}", checksum=wrong, **SPLIT)
    with pytest.raises(UserError, match="checksum sha256:000"):
        generate(config, tmp_path / "x.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_kept_download_that_was_altered_is_refused(
    archive: Path, tmp_path: Path, server: str
) -> None:
    config = QM9Config(source=f"{server}/{archive.name}", checksum=sha256(archive), **SPLIT)
    generate(config, tmp_path / "one.h5")
    (kept,) = tmp_path.glob("download-*")
    kept.write_bytes(kept.read_bytes()[:-10])
    with pytest.raises(UserError, match="remove it and get it again"):
        generate(config, tmp_path / "two.h5")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("/nothing-here", "File not found"),
        (":1/x", "refused"),
        (".invalid/x", "cannot download"),
        (":port/x", "cannot download"),
        ("/ü", "cannot download"),
    ],
)
def test_a_url_that_does_not_answer(
    tmp_path: Path, server: str, address: str, message: str
) -> None:
    base = server if address.startswith("/") else "http://127.0.0.1" * (address[0] == ":")
    url = (base or "http://host") + address
    config = QM9Config(source=url, checksum="sha256:" + "0" * 64, **SPLIT)
    with pytest.raises(UserError, match=message):
        generate(config, tmp_path / "x.h5")
    assert list(tmp_path.iterdir()) == []


# Archives that are not as expected.


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        generate(QM9Config(source="nowhere.tar.bz2"), tmp_path / "x.h5")


def test_an_archive_with_another_checksum(archive: Path, tmp_path: Path) -> None:
    config = QM9Config(source=str(archive), checksum="sha256:" + "0" * 64, **SPLIT)
    with pytest.raises(UserError, match="checksum"):
        generate(config, tmp_path / "x.h5")


def test_an_archive_that_is_cut_off(archive: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.tar.bz2"
    cut.write_bytes(archive.read_bytes()[:-2000])
    with pytest.raises(UserError, match="as an archive of files"):
        read_tarball(cut)


def test_a_file_that_is_not_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "text.tar.bz2"
    path.write_text("hello")
    with pytest.raises(UserError, match="as an archive of files"):
        read_tarball(path)


def test_an_archive_without_molecules(tmp_path: Path) -> None:
    path = tmp_path / "other.tar.bz2"
    write_archive(path, {}, more=["readme.txt"])
    with pytest.raises(UserError, match="it has no molecules"):
        generate(QM9Config(source=str(path)), tmp_path / "x.h5")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("C\t", "Xx\t"),  # an unknown element
        ("gdb 1\t", "gdb 1\t1.0\t"),  # a property too many
        ("5\ngdb", "50\ngdb"),  # more atoms than there are
        ("5\ngdb", "four\ngdb"),
        ("5\ngdb", "4\ngdb"),  # fewer atoms than there are
        ("5\ngdb", "0\ngdb"),
        ("\t-0.535689\n", "\n"),  # an atom with a column too few
        ("\t157.7\t", "\t157.7x\t"),  # not a number
    ],
)
def test_a_molecule_in_another_format_is_named(
    molecules: Molecules, tmp_path: Path, old: str, new: str
) -> None:
    text = xyz_text(molecules, 0)
    assert old in text
    path = tmp_path / "spoilt.tar.bz2"
    write_archive(path, {1: text.replace(old, new, 1)})
    with pytest.raises(UserError, match=r"dsgdb9nsd_000001\.xyz, which is not in the format"):
        read_tarball(path)


def test_a_molecule_that_occurs_twice(molecules: Molecules, tmp_path: Path) -> None:
    path = tmp_path / "twice.tar"
    with tarfile.open(path, "w") as archive:
        for folder in ("a", "b"):
            text = xyz_text(molecules, 0).encode()
            member = tarfile.TarInfo(f"{folder}/dsgdb9nsd_000001.xyz")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    with pytest.raises(UserError, match="molecule 1 twice"):
        read_tarball(path)


def test_folders_and_other_numbers_are_passed_over(molecules: Molecules, tmp_path: Path) -> None:
    path = tmp_path / "odd.tar.bz2"
    write_archive(path, {1: xyz_text(molecules, 0)}, more=["dsgdb9nsd_99999999999.xyz"])
    assert read_tarball(path).index.tolist() == [1]
    with tarfile.open(tmp_path / "folder.tar", "w") as archive:
        folder = tarfile.TarInfo("dsgdb9nsd_000008.xyz")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    assert len(read_tarball(tmp_path / "folder.tar").index) == 0


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("index", lambda index: index[::-1], "occurs twice"),
        ("charges", lambda charges: charges[:10], "do not match their number"),
        ("charges", lambda charges: np.full_like(charges, 79), "other than H, C, N, O, F"),
    ],
)
def test_contradictions_are_named(
    molecules: Molecules, field: str, change: Callable[[np.ndarray], np.ndarray], message: str
) -> None:
    spoilt = replace(molecules, **{field: change(getattr(molecules, field))})  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        spoilt.require_sound("somewhere")


def test_properties_that_are_not_finite_are_refused(molecules: Molecules, tmp_path: Path) -> None:
    path = tmp_path / "nan.tar.bz2"
    write_archive(path, {1: xyz_text(molecules, 0).replace("13.21", "nan")})
    with pytest.raises(UserError, match="not finite"):
        generate(QM9Config(source=str(path)), tmp_path / "x.h5")


def test_more_training_molecules_than_there_are(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Lower the setting train, or raise test_fraction"):
        generate(QM9Config(source=str(archive)), tmp_path / "x.h5")


def test_limit_keeps_the_first_molecules(archive: Path, tmp_path: Path) -> None:
    config = QM9Config(source=str(archive), limit=10, train=5)
    generate(config, tmp_path / "x.h5")
    file = DatasetFile(tmp_path / "x.h5")
    assert file.array("molecules/index").tolist() == list(range(1, 11))
    assert len(file.array("atoms/charges")) == file.array("molecules/offsets")[-1]


def test_a_full_disk_while_downloading(archive: Path, tmp_path: Path, server: str) -> None:
    settings = [f"source={server}/{archive.name}", f"checksum={sha256(archive)}", "train=40"]
    command = ["data", "qm9", "--out", str(tmp_path / "x.h5")]
    for setting in settings:
        command += ["--set", setting]
    assert "file too large" in fails_to_write(1_000, *command)
    assert list(tmp_path.iterdir()) == []


# The package.


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qm9pack", None)
    with pytest.raises(UserError, match=r"pip install qm9pack==1\.0\.3"):
        generate(QM9Config(), tmp_path / "x.h5")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spoilt", ["missing", "columns", "number", "formula", "few"])
def test_a_damaged_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: str) -> None:
    folder = tmp_path / "qm9pack" / "data"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise ImportError('never to be imported')")
    header = (
        "XYZ_file,Index,SMILES,InChi,N_atoms,Stoichiometry,Elements,XYZ_Ang,Dipole_debye,"
        "Polarizability_bohr3,HOMO_au,LUMO_au,HOMO_LUMO_gap_au,R2_bohr2,ZPVE_au,"
        "InternalEnergy_0K_au,InternalEnergy_298K_au,Enthalphy_298K_au,"
        "GibbsFreeEnergy_298K_au,Heatcapacity_Cv_cal_mol_K"
    )
    row = """"x",1,"O","I",3,"[2,0,0,1,0]","['O','H','H']","[[0.,1.,2.],[0.,0.,1.],[1.,1.,0.]]","""
    row += ",".join(["0."] * 12)
    text = f"{header}\n{row}\n"
    if spoilt == "columns":
        text = text.replace("ZPVE_au", "ZPVE")
    elif spoilt == "number":
        text = text.replace("[1.,1.,0.]", "[1.,one,0.]")
    elif spoilt == "formula":
        text = text.replace("[2,0,0,1,0]", "[1,1,0,1,0]")
    if spoilt != "missing":
        for part in (1, 2, 3):
            (folder / f"qm9_part{part}.csv").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    reasons = {
        "missing": "No such file",
        "columns": "ZPVE_au",
        "number": "a coordinate that is not a number",
        "formula": "contradict the molecular formula",
        "few": "3 molecules, not 130,831",
    }
    with pytest.raises(UserError, match=reasons[spoilt]) as error:
        read_package()
    assert "force-reinstall" in str(error.value)
