"""What there is in a folder of results: one walk, from which all checks take their files."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from lietransformer.files import PART_SUFFIX
from lietransformer.layout import FOLDER
from lietransformer.tracking.address import COPIES
from lietransformer.training.run_folder import RunFolder

RESUME = ".resume"
# Any of these makes a folder that of a run. It is broken if the first one is not there.
_OF_A_RUN = {"config.json", "result.json", "metrics.jsonl", "model.pt"}


@dataclass
class Listing:
    """The files that the checks are about.

    Attributes:
        runs: all folders that hold something of a run.
        states: folders with what is needed to resume a run, in a `.resume`.
        summaries: files that say that runs of several seeds are done.
        parts: files that are being written, or that a killed process has left.
        unreadable: folders that cannot be looked into, and why.
    """

    runs: list[RunFolder] = field(default_factory=list)
    states: list[Path] = field(default_factory=list)
    summaries: list[Path] = field(default_factory=list)
    parts: list[Path] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def list_results(results: Path) -> Listing:
    """Walk through the folder without its archive; what vanishes meanwhile is left out."""
    listing = Listing()

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            listing.unreadable.append(f"{error.filename} ({error.strerror})")

    for name, folders, files in os.walk(results, onerror=note):
        folder = Path(name)
        folders[:] = sorted(set(folders) - COPIES - ({FOLDER} if folder == results else set()))
        listing.parts += [folder / file for file in sorted(files) if file.endswith(PART_SUFFIX)]
        if folder.parent.name == RESUME:
            listing.states.append(folder)
        elif not _OF_A_RUN.isdisjoint(files):
            listing.runs.append(RunFolder(folder))
        listing.summaries += [
            folder / file
            for file in sorted(files)
            if file.startswith("seeds-") and file.endswith(".json")
        ]
    return listing


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder, as far as they can be seen."""
    total = 0
    for name, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.lstat(os.path.join(name, file)).st_size
            except OSError:
                continue
    return total
