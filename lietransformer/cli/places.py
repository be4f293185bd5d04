"""Where everything is."""

from pathlib import Path

from lietransformer.files import read_json
from lietransformer.layout import FOLDER
from lietransformer.report.runs import MANIFEST
from lietransformer.tracking.address import (
    DEFAULT_URI,
    NO_TRACKING,
    database_of,
    is_server,
)

_PLACES = {
    "report": "report.html",
    "verdicts": "claims.md",
    "tables": "tables",
    "figures": "figures",
    "runs": "runs",
    "archive": FOLDER,
}


def places(results: Path) -> str:
    """What there is in a folder of results, and how to see it."""
    manifest = read_json(results / MANIFEST) or {}
    tier = manifest.get("tier")
    lines = [f"Results{f' of the tier {tier}' if tier else ''}:"]
    found = {name: results / place for name, place in _PLACES.items() if (results / place).exists()}
    lines += [f"  {name:8}  {path}" for name, path in found.items()]
    mlflow = _mlflow(str((manifest.get("config") or {}).get("tracking", DEFAULT_URI)))
    if mlflow:
        lines.append(f"  {'MLflow':8}  {mlflow}")
    return "\n".join(lines) if len(lines) > 1 else f"There are no results in {results} yet."


def _mlflow(uri: str) -> str | None:
    if is_server(uri):
        return uri
    if uri == NO_TRACKING or not database_of(uri).exists():
        return None
    return "make ui" if uri == DEFAULT_URI else f"mlflow ui --backend-store-uri {uri}"
