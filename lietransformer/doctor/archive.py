"""The published runs."""

from collections.abc import Iterator
from pathlib import Path

from lietransformer.doctor.findings import Finding, counted, some
from lietransformer.errors import UserError
from lietransformer.layout import FOLDER, Archive


def check(results: Path) -> Iterator[Finding]:
    """Whether every file of the archive is as its manifest says."""
    archive = Archive(results / FOLDER)
    restore = f"`git checkout -- {archive.path}` restores what is missing or damaged"
    try:
        found = archive.problems() if archive.exists else []
        strays = archive.strays() if archive.exists else []
    except UserError as error:
        yield Finding("problem", str(error).rstrip("."), restore)
        return
    if not archive.exists:
        yield Finding("note", "no published runs", "`lietransformer publish` adds finished ones")
    elif found:
        yield Finding("problem", f"{archive.path} is damaged: {some(found)}", restore, tuple(found))
    else:
        yield Finding("ok", f"{counted(len(archive.runs), 'published run')}, unaltered")
    if strays:
        yield Finding("warning", some(strays), "remove what a killed publish left", tuple(strays))
