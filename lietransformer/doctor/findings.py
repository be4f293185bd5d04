"""What the checks found, and the report as text or JSON."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from lietransformer.errors import UserError

Level = Literal["ok", "note", "warning", "problem"]
Check = Callable[[], Iterable["Finding"]]
Report = Mapping[str, list["Finding"]]  # findings by the title of their section
_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """What was found, what to do about it, and the files or runs concerned.

    A warning can cause trouble or mislead; a problem stops something from working.
    """

    level: Level
    what: str
    remedy: str | None = None
    items: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Lines of the report with the first items; JSON has all of them."""
        lines = [f"  {self.level:<7}  {self.what}"]
        lines += [f"{'':<11}  {item}" for item in self.items[:_SHOWN]]
        if len(self.items) > _SHOWN:
            lines.append(f"{'':<11}  and {len(self.items) - _SHOWN} more")
        if self.remedy is not None:
            lines.append(f"{'':<11}→ {self.remedy}")
        return "\n".join(lines)


def listed(level: Level, what: str, items: Iterable[object], remedy: str) -> Iterator[Finding]:
    """One finding about all items; none if there are none."""
    names = tuple(map(str, items))
    if names:
        yield Finding(level, f"{what} ({len(names):,})", remedy, names)


def run(check: Check) -> list[Finding]:
    """The findings of a check. If the check itself fails, that is a problem in the report."""
    findings: list[Finding] = []
    try:
        for finding in check():
            findings.append(finding)  # what was found before a failure is kept
    except Exception as error:
        findings.append(Finding("problem", message(error)))
    return findings or [Finding("ok", "none found")]


def message(error: Exception) -> str:
    """A UserError explains itself; others need their type."""
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


def counts(report: Report) -> dict[str, int]:
    """How many findings there are of each level."""
    found = Counter(finding.level for findings in report.values() for finding in findings)
    return {level: found[level] for level in get_args(Level)}


def as_text(report: Report) -> str:
    """Findings below the titles of their sections; the last line counts problems and warnings."""
    sections = ("\n".join([title, *map(str, found), ""]) for title, found in report.items())
    number = counts(report)
    last = f"Problems: {number['problem']}, warnings: {number['warning']}"
    return "\n".join([*sections, last])


def as_json(report: Report) -> str:
    """The same for programs."""
    sections = {title: [asdict(each) for each in found] for title, found in report.items()}
    return json.dumps({"schema_version": 2, "counts": counts(report), "sections": sections})


def size(number_of_bytes: int) -> str:
    """Bytes in MB or GB."""
    giga = number_of_bytes / 1e9
    return f"{giga:,.1f} GB" if giga >= 1 else f"{number_of_bytes / 1e6:,.1f} MB"
