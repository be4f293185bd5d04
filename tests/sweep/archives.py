"""Archives of published runs as far as the workflow looks at them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lietransformer.layout import FOLDER, MANIFEST, empty_manifest, sha256
from lietransformer.training.run_folder import write_json


def manifest_entry(folder: str) -> dict[str, Any]:
    """A run in the manifest of an archive."""
    _, task, model, _, seed = folder.split("/")
    return {
        **{"task": task, "model": model, "seed": int(seed.removeprefix("seed-"))},
        **{"status": "finished", "hash": "0", "dataset": task, "git_commit": "0" * 40},
        **{"machine": {"processor": "a processor", "torch": "2"}, "core_hours": 1.0},
    }


def publish(results: Path, runs: Iterable[str], measurements: Iterable[str] = ()) -> Path:
    """An archive in a folder of results.

    Args:
        results: the folder.
        runs: folders of runs within it, such as runs/springs/lieconv-t2/n10-1a2b3c4d/seed-0.
        measurements: names of their files, without the ending.
    """
    archive, manifest = results / FOLDER, empty_manifest()
    manifest["runs"] = {name: manifest_entry(name) for name in runs}
    files = [*(f"{name}/result.json" for name in manifest["runs"])]
    for name in (*files, *(f"measurements/{stem}.json" for stem in measurements)):
        write_json(archive / name, {"status": "finished"})
        size = (archive / name).stat().st_size
        manifest["files"][name] = {"sha256": sha256(archive / name), "bytes": size}
    write_json(archive / MANIFEST, manifest)
    return archive
