"""The findings as text for people, and as JSON for programs."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from lietransformer.doctor.findings import Finding, Level, Section, counted

_SCHEMA_VERSION = 1
_WIDTH = max(map(len, get_args(Level)))


def has_problem(sections: Sequence[Section]) -> bool:
    """Whether anything keeps something from working."""
    return _counts(sections)["problem"] > 0


def as_text(sections: Sequence[Section]) -> str:
    """A line for each finding, below the titles of the sections, and one that sums up."""
    lines = []
    for section in sections:
        lines += [section.title, *(line for found in section.findings for line in _lines(found))]
        lines.append("")
    return "\n".join([*lines, _summary(_counts(sections))])


def as_json(sections: Sequence[Section], results: Path) -> str:
    """The same, with the names of all files and runs that a finding is about."""
    content = {
        "schema_version": _SCHEMA_VERSION,
        "results": str(results),
        "counts": _counts(sections),
        "sections": [
            {"title": section.title, "findings": [vars(found) for found in section.findings]}
            for section in sections
        ],
    }
    return json.dumps(content, indent=2)


def _counts(sections: Sequence[Section]) -> dict[str, int]:
    found = Counter(finding.level for section in sections for finding in section.findings)
    return {level: found[level] for level in get_args(Level)}


def _lines(finding: Finding) -> list[str]:
    lines = [f"  {finding.level.ljust(_WIDTH)}  {_printable(finding.what)}"]
    if finding.remedy is not None:
        lines.append(f"  {' ' * _WIDTH}  → {_printable(finding.remedy)}")
    return lines


def _summary(counts: dict[str, int]) -> str:
    problems, warnings = counts["problem"], counts["warning"]
    if not problems and not warnings:
        return "All is well."
    parts = [counted(problems, "problem")] if problems else ["No problem"]
    if warnings:
        parts.append(counted(warnings, "warning"))
    return " and ".join(parts) + "; what to do stands beside each."


def _printable(text: str) -> str:
    """On one line, and as far as a terminal can show it: names of files can be any bytes."""
    shown = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
