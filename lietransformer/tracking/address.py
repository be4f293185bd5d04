"""Addresses of MLflow stores, a SQLite file or a server, without importing MLflow."""

import os
from pathlib import Path

from lietransformer.errors import UserError
from lietransformer.files import require_writable_name

DEFAULT_URI = "sqlite:///results/mlflow.db"
NO_TRACKING = "none"
SQLITE = "sqlite:///"


def tracking_uri(given: str | None) -> str:
    """The store to use: the one given, that of the environment, or a file in results/."""
    return given or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI


def is_server(uri: str) -> bool:
    """Whether many processes can write to it at once."""
    return uri.startswith(("http://", "https://"))


def database_of(uri: str) -> Path:
    """The SQLite file of a store."""
    return Path(uri.removeprefix(SQLITE))


def require_usable(uri: str) -> None:
    """Refuse what is neither a SQLite file nor a server."""
    if is_server(uri):
        return
    if not uri.startswith(SQLITE) or uri == SQLITE:
        raise UserError(
            f"the tracking store must be a SQLite file, such as {DEFAULT_URI}, or a server, such "
            f"as http://host:5000, got {uri}. MLflow no longer supports its folders of files "
            "(./mlruns)."
        )
    require_writable_name(database_of(uri), replace=True)
