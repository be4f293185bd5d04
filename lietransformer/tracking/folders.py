"""What a run folder and its run in MLflow are matched by. No MLflow is needed to know it."""

import hashlib
from pathlib import Path

from lietransformer.layout import COPIES, MANIFEST
from lietransformer.training.run_folder import RunFolder

HASH_TAG = "lietransformer.hash"
SYNCED_TAG = "lietransformer.synced"
SOURCE_TAG = "source"
PUBLISHED, LOCAL = "published", "this machine"
_DEPTH = 6  # of a run folder in the archive: runs/TASK/MODEL/VARIANT/seed-K


def run_folders(root: Path) -> list[RunFolder]:
    """Every run below a folder, or the folder itself; not MLflow's copies of their files."""
    files = sorted(root.rglob("config.json"))
    return [
        RunFolder(path.parent)
        for path in files
        if not COPIES.intersection(path.relative_to(root).parts)
    ]


def digest_of(folder: RunFolder) -> str:
    """Of the files that a run ends with. The machine is watched until after the result."""
    files = (folder.metrics_file, folder.system_file, folder.result_file)
    content = hashlib.sha256()
    for path in files:
        content.update(path.read_bytes() if path.exists() else b"")
    return content.hexdigest()


def source_of(folder: RunFolder) -> str:
    """Whether a run is one of the archive or one of this machine."""
    parents = folder.path.resolve().parents[:_DEPTH]
    return PUBLISHED if any((parent / MANIFEST).exists() for parent in parents) else LOCAL


def key_of(folder: RunFolder) -> str:
    """What a run is found by in MLflow, where a published run does not replace a local one."""
    own = str(folder.read_config_json()["hash"])
    return f"{PUBLISHED}-{own}" if source_of(folder) == PUBLISHED else own
