"""The file format: what is written is read, and what is wrong with a file is said."""

import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lietransformer import __version__
from lietransformer.data.hdf5 import SCHEMA_VERSION, content_hash
from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.data.writer import create_dataset


def write_example(path: Path, seed: int = 3) -> None:
    with create_dataset(path, kind="example", config={"size": 4, "name": "x"}, seed=seed) as file:
        file.write("numbers", np.arange(12.0).reshape(4, 3), unit="m")
        file.write("group/flags", np.array([True, False]))
        file.write("group/text", np.array([b"abc", b"d"]))
        file.write("empty", np.empty((0, 3)))
        rows = file.array("rows", (5, 2), "i4")
        rows.append(np.arange(4).reshape(2, 2))
        rows.append(np.empty((0, 2)))
        rows.append(np.arange(4, 10).reshape(3, 2))


@pytest.fixture
def example(tmp_path: Path) -> Path:
    path = tmp_path / "example.h5"
    write_example(path)
    return path


def test_a_round_trip(example: Path) -> None:
    file = DatasetFile(example)
    assert (file.kind, file.seed, file.config) == ("example", 3, {"size": 4, "name": "x"})
    assert file.package_version == __version__
    assert set(file.names) == {"numbers", "group/flags", "group/text", "empty", "rows"}
    np.testing.assert_array_equal(file.array("numbers"), np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(file.array("group/flags"), [True, False])
    assert file.array("group/text").tolist() == [b"abc", b"d"]
    assert file.array("empty").shape == (0, 3)
    np.testing.assert_array_equal(file.array("rows"), np.arange(10).reshape(5, 2))
    assert file.attribute("numbers", "unit") == "m"


def test_it_is_a_plain_hdf5_file(example: Path) -> None:
    """Readable without this package, with everything the contract names in its attributes."""
    with h5py.File(example) as file:
        np.testing.assert_array_equal(file["numbers"][:], np.arange(12.0).reshape(4, 3))
        assert file["numbers"].dtype.str == "<f8"
        assert {
            "kind",
            "schema_version",
            "config",
            "seed",
            "package_version",
            "content_hash",
        } == set(file.attrs)


def test_arrays_are_mapped_and_read_only(example: Path) -> None:
    array = DatasetFile(example).array("numbers")
    assert isinstance(array, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_example(tmp_path / name, seed)
    contents = [(tmp_path / name).read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]
    hashes = [DatasetFile(tmp_path / name).content_hash for name in "abc"]
    assert hashes[0] == hashes[1] != hashes[2]


def test_too_few_rows_are_a_mistake_of_the_generator(tmp_path: Path) -> None:
    path = tmp_path / "short.h5"
    with (
        pytest.raises(RuntimeError, match="0 rows of 3"),
        create_dataset(path, kind="example", config={}, seed=0) as file,
    ):
        file.array("rows", (3,), "f8")
    assert list(tmp_path.iterdir()) == []


def test_pickling_carries_the_name_and_notices_another_content(example: Path) -> None:
    pickled = pickle.dumps(DatasetFile(example))
    assert len(pickled) < 1000
    assert pickle.loads(pickled).array("rows").shape == (5, 2)
    example.unlink()
    write_example(example, seed=4)
    with pytest.raises(DatasetError, match="changed since it was opened first"):
        pickle.loads(pickled)


# Everything that can be wrong with a file.


def edit(path: Path, change: Callable[[Any], None]) -> None:
    with h5py.File(path, "r+") as file:
        change(file)


def set_attribute(name: str, value: Any) -> Callable[[Any], None]:
    return lambda file: file.attrs.__setitem__(name, value)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def damage_array(path: Path) -> None:
    with h5py.File(path) as file:
        offset = file["numbers"].id.get_offset()
    with open(path, "r+b") as raw:
        raw.seek(offset + 5)
        raw.write(b"\x55")


def remove_array(file: Any) -> None:
    del file["group/flags"]


def add_array(file: Any) -> None:
    file["more"] = np.arange(3)


def replace_by_other_hdf5(path: Path) -> None:
    path.unlink()
    with h5py.File(path, "w") as file:
        file["x"] = 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: (path.unlink(), path.mkdir()), "it is a folder"),
        (truncate, "it is cut off"),
        (lambda path: path.write_bytes(b""), "it has another format"),
        (lambda path: path.write_text("position,mass\n1,2\n"), "it has another format"),
        (replace_by_other_hdf5, "it lacks the attribute kind or schema_version"),
        (lambda path: edit(path, set_attribute("kind", "other")), "do not match the hash"),
        (lambda path: edit(path, set_attribute("config", "{}")), "do not match the hash"),
        (lambda path: edit(path, set_attribute("seed", 4)), "do not match the hash"),
        (lambda path: edit(path, remove_array), "do not match the hash"),
        (lambda path: edit(path, add_array), "do not match the hash"),
        (damage_array, "the array numbers does not match its hash"),
        (lambda path: edit(path, lambda f: f["numbers"].attrs.__delitem__("sha256")), "do not"),
        (lambda path: edit(path, set_attribute("kind", 3)), "do not match the hash"),
        (lambda path: edit(path, set_attribute("schema_version", h5py.Empty("i4"))), "damaged"),
        (lambda path: edit(path, set_attribute("schema_version", "one")), "damaged"),
        (
            lambda path: edit(path, set_attribute("schema_version", SCHEMA_VERSION - 1)),
            "an older release. Restore it with `git checkout`",
        ),
        (
            lambda path: edit(path, set_attribute("schema_version", SCHEMA_VERSION + 1)),
            "a newer release. Update the package",
        ),
    ],
)
def test_a_bad_file_is_refused_with_the_reason(
    example: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(example)
    with pytest.raises(DatasetError) as error:
        DatasetFile(example)
    assert message in str(error.value)
    assert str(example) in str(error.value)


def test_an_array_that_cannot_be_mapped_is_refused(example: Path) -> None:
    """Repacked with compression by another tool, and hashed anew."""
    with h5py.File(example, "r+") as file:
        values, attributes = file["numbers"][:], dict(file["numbers"].attrs)
        del file["numbers"]
        file.create_dataset("numbers", data=values, compression="gzip").attrs.update(attributes)
        file.attrs["content_hash"] = content_hash(file)
    with pytest.raises(DatasetError, match="is compressed or in pieces"):
        DatasetFile(example)


def test_another_kind_is_refused(example: Path) -> None:
    with pytest.raises(DatasetError, match="of the kind example, not springs"):
        DatasetFile(example, kind="springs")


def test_a_missing_array_is_named(example: Path) -> None:
    with pytest.raises(DatasetError, match="has no array nothing"):
        DatasetFile(example).array("nothing")


def test_without_verification_only_the_arrays_are_not_looked_at(example: Path) -> None:
    damage_array(example)
    file = DatasetFile(example, verify=False)
    with pytest.raises(DatasetError, match="numbers"):
        file.verify()
    edit(example, remove_array)
    with pytest.raises(DatasetError, match="do not match"):
        DatasetFile(example, verify=False)


def test_any_flipped_byte_is_noticed_or_harmless(example: Path, tmp_path: Path) -> None:
    original = DatasetFile(example)
    arrays = {name: np.array(original.array(name)) for name in original.names}
    content = example.read_bytes()
    noticed = 0
    for position in random.Random(0).sample(range(len(content)), 400):
        spoilt = tmp_path / "spoilt.h5"
        spoilt.write_bytes(
            content[:position] + bytes([content[position] ^ 0x41]) + content[position + 1 :]
        )
        try:
            file = DatasetFile(spoilt)
        except DatasetError:
            noticed += 1
            continue
        assert (file.kind, file.seed, file.config) == ("example", 3, original.config)
        for name, values in arrays.items():
            np.testing.assert_array_equal(file.array(name), values)
    assert noticed > 20


@pytest.mark.parametrize(
    ("name", "value"), [("config", 3), ("config", "[1, 2]"), ("config", "{"), ("seed", "x")]
)
def test_attributes_of_another_kind_hashed_anew(example: Path, name: str, value: Any) -> None:
    with h5py.File(example, "r+") as file:
        file.attrs[name] = value
        file.attrs["content_hash"] = content_hash(file)
    with pytest.raises(DatasetError, match="something is damaged"):
        DatasetFile(example)


def test_an_array_without_rows_is_refused(example: Path) -> None:
    with h5py.File(example, "r+") as file:
        file["scalar"] = 3.0
        file.attrs["content_hash"] = content_hash(file)
    with pytest.raises(DatasetError, match="scalar has no rows"):
        DatasetFile(example)


def test_arrays_are_verified_to_the_end(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lietransformer.data.reader._HASHED_AT_ONCE", 30)
    DatasetFile(example)
    with h5py.File(example) as file:
        offset = file["numbers"].id.get_offset() + file["numbers"].size * 8 - 1
    with open(example, "r+b") as raw:
        raw.seek(offset)
        raw.write(b"\x7f")
    with pytest.raises(DatasetError, match="the array numbers does not match"):
        DatasetFile(example)


def test_an_open_dataset_stays_what_it_was_when_the_file_is_replaced(example: Path) -> None:
    file = DatasetFile(example)
    with create_dataset(example, kind="example", config={}, seed=0) as other:
        other.write("numbers", np.zeros((4000, 3)))
    np.testing.assert_array_equal(file.array("numbers"), np.arange(12.0).reshape(4, 3))


def test_a_pickled_dataset_is_found_from_another_folder(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(example.parent)
    pickled = pickle.dumps(DatasetFile(example.name))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(pickled).array("rows").shape == (5, 2)


def test_the_hash_covers_what_is_noted_beside_arrays_and_their_types(example: Path) -> None:
    with h5py.File(example, "r+") as file:
        hashes = [content_hash(file)]
        file["numbers"].attrs["unit"] = "km"
        hashes.append(content_hash(file))
        flags, attributes = file["group/flags"][:], dict(file["group/flags"].attrs)
        for changed in (flags.astype("i1"), flags[None]):
            del file["group/flags"]
            file.create_dataset("group/flags", data=changed).attrs.update(attributes)
            hashes.append(content_hash(file))
    assert len(set(hashes)) == 4


def test_the_hash_covers_every_array(example: Path, tmp_path: Path) -> None:
    """An array changed together with its own hash still changes the hash of the file."""
    copy = shutil.copy(example, tmp_path / "copy.h5")
    with h5py.File(copy, "r+") as file:
        before = content_hash(file)
        file["numbers"].attrs["sha256"] = "0" * 64
        assert content_hash(file) != before
