"""The datasets in the folder of results."""

from collections.abc import Iterator
from pathlib import Path

from lietransformer.data.reader import DatasetError, DatasetFile
from lietransformer.doctor.findings import Finding, size


def check(results: Path, *, thorough: bool) -> Iterator[Finding]:
    """Whether each is complete and of this version; thoroughly, whether it is unaltered."""
    files = sorted((results / "data").glob("*.h5"))
    if not files:
        yield Finding("note", "no datasets yet", "the workflow generates them")
    for path in files:
        yield _judge(path, thorough=thorough)


def _judge(path: Path, *, thorough: bool) -> Finding:
    again = f"remove {path} and run the workflow again, which generates it"
    if not path.is_file():
        return Finding("problem", f"{path} is no file", again, (str(path),))
    try:
        file = DatasetFile(path, verify=thorough)
    except DatasetError as error:
        return Finding("problem", str(error).rstrip("."), again, (str(path),))
    how = "unaltered" if thorough else "complete"
    return Finding("ok", f"{path.name}: {file.kind}, {how}, {size(path.stat().st_size)}")
