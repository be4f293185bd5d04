"""The runs beside the sweep that they are of: those that are missing, and those of other sweeps."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lietransformer.doctor.findings import Finding, counted, size, some
from lietransformer.doctor.listing import Listing, size_of
from lietransformer.doctor.runs import ExaminedRun
from lietransformer.errors import UserError
from lietransformer.layout import FOLDER
from lietransformer.report.runs import MANIFEST, read_sweep
from lietransformer.sweep.jobs import seeds_of
from lietransformer.training.run_folder import RunFolder


def check(results: Path, listing: Listing, runs: Sequence[ExaminedRun]) -> Iterator[Finding]:
    """What is planned and not there, there and not planned, or said to be there and is not."""
    manifest = results / MANIFEST
    if manifest.is_file():
        yield from _beside_manifest(results, runs)
    else:
        yield Finding(
            "note",
            f"no {MANIFEST}: what was planned is not known, and all runs count",
            "`snakemake` writes it",
        )
    yield from _summaries(listing.summaries)


def _beside_manifest(results: Path, runs: Sequence[ExaminedRun]) -> Iterator[Finding]:
    try:
        sweep = read_sweep(results)
        planned = {results / str(folder) for folder in sweep.runs["folder"]}
    except Exception as error:  # a file that someone edited can hold anything
        what = f"{MANIFEST} cannot be read ({type(error).__name__}: {error})"
        if isinstance(error, UserError):
            what = str(error).rstrip(".")
        yield Finding("problem", what, "remove it and run `snakemake`, which writes it")
        return
    found = {run.folder.path: run for run in runs if run.status != "gone"}
    published = {path for path in planned if path.is_relative_to(results / FOLDER)}
    missing = sorted(map(str, planned - found.keys() - published))
    done = sum(found[path].status in ("finished", "diverged") for path in planned & found.keys())
    what = f"{done + len(published):,} of the {counted(len(planned), 'run')} of the sweep are done"
    yield Finding("ok", what + (f", {len(published):,} of them published" if published else ""))
    if missing:
        yield Finding(
            "note",
            f"{counted(len(missing), 'run')} of the sweep not begun: {some(missing)}",
            "run `snakemake` with the same settings as before, and with `--config published=use` "
            "if the tier trains nothing by itself",
            tuple(missing),
        )
    orphans = sorted(path for path in found.keys() - planned)
    if orphans:
        total = sum(map(size_of, orphans))
        yield Finding(
            "note",
            f"{counted(len(orphans), 'run')}, {size(total)}, of other settings than the sweep's, "
            f"which no table or figure uses: {some(orphans)}",
            "going back to their settings finds them again; if nobody will, remove their folders "
            "(--json names them all)",
            tuple(map(str, orphans)),
        )


def _summaries(summaries: Sequence[Path]) -> Iterator[Finding]:
    """Files by which Snakemake thinks that runs are done."""
    empty = []
    for path in summaries:
        seeds = seeds_of(path)
        if seeds and not all(RunFolder(path.parent / f"seed-{seed}").is_done for seed in seeds):
            empty.append(str(path))
    if empty:
        yield Finding(
            "warning",
            f"{counted(len(empty), 'summary', 'summaries')} of runs that are not there or not "
            f"done: {some(empty)}",
            "`snakemake` notices, and trains what its sweep needs; remove those of other sweeps",
            tuple(empty),
        )
