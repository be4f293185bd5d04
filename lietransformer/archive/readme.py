"""The archive's README.md, made from its manifest."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from lietransformer.files import complete_or_absent
from lietransformer.layout import README, Archive, run_name

_INTRODUCTION = """\
# Published runs

Finished runs at the paper's protocol. Tables, figures and verdicts are made from them
(`make tables`), and anyone can check them by training a sample again (`lietransformer verify`).
This page and `MANIFEST.json` are written by `lietransformer publish`; `lietransformer publish
--check` compares every file with its SHA-256.
"""
_HOW = """\
## How they were made

Core-hours are CPU time of training, evaluation and tests. A run is a function of its settings, its
seed and its dataset; commit, machine and versions are in its `result.json`.
`evaluation.h5` keeps the error of each step and of each test trajectory; predicted positions are
kept for the trajectories that Figures 6 and 11 draw (`trajectories/`).
"""


def write(archive: Archive) -> None:
    """Write README.md."""
    with complete_or_absent(archive.path / README) as part:
        part.write_text(text(archive), encoding="utf-8")


def text(archive: Archive) -> str:
    """The page."""
    runs, planned = archive.runs, archive.manifest["sweep"].get("runs", [])
    hours = sum(run["core_hours"] for run in runs.values())
    done = sum(1 for run in planned if run["folder"] in runs)
    lines = [
        _INTRODUCTION,
        f"{_count(len(runs))}, {hours:.1f} core-hours. "
        f"Of the {len(planned)} runs of the workstation tier {done} are here.",
        "",
        "| runs | seeds here | of the tier | core-hours |",
        "| --- | --- | ---: | ---: |",
        *_rows(runs, planned),
        "",
        *_list("Commits", Counter(run["git_commit"] for run in runs.values())),
        *_list("Machines", Counter(_machine(run["machine"]) for run in runs.values())),
        *_names("Datasets", {n: d["content_hash"] for n, d in _datasets(archive).items()}),
        *_names("Models for `load_model`", _weights(archive)),
        _HOW,
    ]
    return "\n".join(lines)


def _rows(runs: Mapping[str, Any], planned: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each configuration that is planned or published."""
    seeds: dict[str, list[int]] = defaultdict(list)
    hours: Counter[str] = Counter()
    total = Counter(run_name(run) for run in planned)
    for run in runs.values():
        seeds[run_name(run)].append(run["seed"])
        hours[run_name(run)] += run["core_hours"]
    for name in dict.fromkeys([*total, *seeds]):
        here = ", ".join(map(str, sorted(seeds[name]))) or "not run"
        spent = f"{hours[name]:.1f}" if name in hours else ""
        yield f"| {name} | {here} | {total[name]} | {spent} |"


def _datasets(archive: Archive) -> dict[str, dict[str, Any]]:
    datasets: dict[str, dict[str, Any]] = archive.manifest["datasets"]
    return datasets


def _weights(archive: Archive) -> dict[str, str]:
    weights = archive.manifest["weights"]
    return {name: f"[{entry['file']}]({entry['card']})" for name, entry in weights.items()}


def _list(title: str, counts: Counter[str]) -> Iterator[str]:
    yield f"## {title}\n"
    yield from (f"- {name}: {_count(count)}" for name, count in counts.most_common())
    yield ""


def _names(title: str, values: Mapping[str, str]) -> Iterator[str]:
    yield f"## {title}\n"
    yield from (f"- {name}: {value}" for name, value in values.items())
    yield from ([] if values else ["None yet."])
    yield ""


def _machine(machine: Mapping[str, Any]) -> str:
    parts = (machine.get("gpu"), machine.get("processor"), machine.get("system"))
    versions = f"Python {machine.get('python')}, torch {machine.get('torch')}"
    return ", ".join([*(str(part) for part in parts if part), versions])


def _count(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
