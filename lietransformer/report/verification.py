"""What `lietransformer verify` found on this machine: published runs, trained again."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lietransformer.errors import UserError
from lietransformer.files import read_json
from lietransformer.layout import Archive
from lietransformer.report.provenance import short_commit
from lietransformer.report.runs import machine_in_words

FILE = "verification.json"
_SCHEMA_VERSION = 1
_MOST_SPREADS = 100
_ORDER = ("differs", "not compared", "agrees", "identical")


@dataclass(frozen=True)
class Verification:
    """Published runs beside the same runs of this machine.

    Attributes:
        machine: this one.
        commit: of the code that trained them here.
        runs: as the file has them; those that differ come first.
        datasets: as the file has them; those that differ come first.
        is_of_another_archive: the archive has changed since, or is another one.
    """

    machine: str
    commit: str
    runs: list[dict[str, Any]]
    datasets: list[dict[str, Any]]
    is_of_another_archive: bool = False

    @property
    def is_bad(self) -> bool:
        """Whether anything differs from what was published."""
        return any(_is_bad(own) for own in (*self.runs, *self.datasets))

    @property
    def damages(self) -> list[str]:
        """Verdicts of datasets that cannot be read."""
        return [own["verdict"] for own in self.datasets if own["verdict"].startswith("damaged")]

    @property
    def is_empty(self) -> bool:
        """Whether no run was compared."""
        return all(run["verdict"] == "not compared" for run in self.runs)

    @property
    def statement(self) -> str:
        """What was found, in a sentence or two."""
        return " ".join(
            text for text in (self._of_runs, self._of_datasets, self._of_archive) if text
        )

    @property
    def _of_archive(self) -> str:
        if not self.is_of_another_archive:
            return ""
        return (
            "This was verified against another state of the archive than the one shown here. "
            "Repeat it with `lietransformer verify`."
        )

    @property
    def _of_runs(self) -> str:
        compared = [run for run in self.runs if run["verdict"] != "not compared"]
        differing = [run["run"] for run in compared if run["verdict"] == "differs"]
        if not compared:
            return "No run was trained far enough to be compared with a published one."
        total, same = len(compared), sum(run["verdict"] == "identical" for run in compared)
        if differing:
            verb = "differs" if len(differing) == 1 else "differ"
            return (
                f"WARNING: {len(differing)} of {total} re-trained runs {verb} from the published "
                f"ones: {', '.join(differing)}."
            )
        exactly = f", {'' if same == total else f'{same} of them '}bit by bit" if same else ""
        verb = "run agrees" if total == 1 else "runs agree"
        return f"{total} of {total} re-trained {verb} with the published ones{exactly}."

    @property
    def _of_datasets(self) -> str:
        made = [own for own in self.datasets if own["verdict"] != "not generated"]
        differing = [own["name"] for own in made if _is_bad(own)]
        if differing:
            return f"WARNING: datasets differ from the published ones: {', '.join(differing)}."
        count = len(made)
        datasets = "dataset has" if count == 1 else "datasets have"
        return f"{count} generated {datasets} the published content hash." if made else ""

    def run_rows(self) -> list[list[str]]:
        """A row of text for each run: see `RUN_HEADINGS`."""
        return [
            [
                run["run"],
                run["verdict"],
                f"{run['trained_epochs']:,.0f} of {run['epochs']:,.0f}",
                run["metric"],
                _number(run["published"]),
                _number(run["here"]),
                _spreads(run),
                f"{short_commit(str(run['published_commit']))}, {run['published_machine']}",
                f"{run['seconds'] / 60:.1f}",
            ]
            for run in self.runs
        ]

    def dataset_rows(self) -> list[list[str]]:
        """A row of text for each dataset: see `DATASET_HEADINGS`."""
        return [
            [own["name"], own["verdict"], str(own["expected"])[:12], str(own["found"] or "–")[:12]]
            for own in self.datasets
        ]


RUN_HEADINGS = (
    *("run", "verdict", "epochs", "metric", "published", "here"),
    *("difference in spreads over seeds", "published commit and machine", "minutes"),
)
DATASET_HEADINGS = ("dataset", "verdict", "published hash", "hash here")


def read_verification(results: Path, archive: Archive | None = None) -> Verification | None:
    """What was verified on this machine; None if nothing was.

    Args:
        results: the folder of the file.
        archive: what is shown; a file of earlier versions does not say what it was compared with.
    """
    path = results / FILE
    if not path.exists():
        return None
    content = read_json(path) or {}
    try:
        if content["schema_version"] != _SCHEMA_VERSION:
            raise ValueError(f"schema version {content['schema_version']}")
        known = content.get("manifest_sha256")
        found = Verification(
            machine_in_words(content["machine"]) or "unknown",
            short_commit(str(content["git_commit"])),
            sorted(content["runs"], key=_rank),
            sorted(content["datasets"], key=_rank),
            bool(archive and archive.exists and known and known != archive.state),
        )
        found.run_rows()
        found.dataset_rows()
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a verification of schema version {_SCHEMA_VERSION} "
            f"({type(error).__name__}: {error}). Write it again with `lietransformer verify`."
        ) from error
    return found


def _is_bad(entry: dict[str, Any]) -> bool:
    return entry["verdict"] == "differs" or str(entry["verdict"]).startswith("damaged")


def _rank(entry: dict[str, Any]) -> int:
    if _is_bad(entry):
        return 0
    return _ORDER.index(entry["verdict"]) if entry["verdict"] in _ORDER else len(_ORDER)


def _number(value: Any) -> str:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return f"{value:.6g}" if is_number else "–"


def _spreads(run: dict[str, Any]) -> str:
    """The difference in units of the spread over seeds, or why there is none."""
    distance = run.get("difference_in_spreads")
    if run["verdict"] == "identical":
        return "none"
    if run.get("reason"):
        return str(run["reason"])
    if distance is not None and abs(distance) > _MOST_SPREADS:
        return f"> {_MOST_SPREADS}"
    of = f" over {run['spread_of']}" if run.get("spread_of") else ""
    return "–" if distance is None else f"{distance:.2f}{of}"
