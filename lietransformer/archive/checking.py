"""`lietransformer publish --check`: is the archive what its manifest says?

Imports torch only where there are weights.
"""

from pathlib import Path

from lietransformer.archive import readme
from lietransformer.errors import UserError
from lietransformer.files import read_json
from lietransformer.layout import COPIED, MANIFEST, README, RESTORE, Archive

_REMEDY = "remove it, or run `lietransformer publish` again if an interrupted publish left it"


def check(archive: Archive) -> list[str]:
    """All that is wrong with an archive, a sentence each."""
    if not archive.exists:
        if archive.stray_names():
            return [f"{archive.path / MANIFEST} is missing. {RESTORE}"]
        return [f"there is no archive at {archive.path}"]
    found = [*archive.problems(), *(f"{stray}: {_REMEDY}" for stray in archive.strays())]
    for name, run in archive.runs.items():
        files = [f"{name}/{file}" for file in COPIED]
        found += [f"{file} is not in the manifest" for file in files if file not in archive.files]
        config = read_json(archive.path / name / "config.json") or {}
        result = read_json(archive.path / name / "result.json") or {}
        dataset = archive.manifest["datasets"].get(run["dataset"], {})
        for what, here, there in (
            ("hash of settings", run["hash"], config.get("hash")),
            ("hash in the result", run["hash"], result.get("hash")),
            ("commit", run["git_commit"], result.get("git_commit")),
            ("dataset hash", dataset.get("content_hash"), result.get("dataset_hash")),
        ):
            if here != there:
                found.append(f"{archive.path / name}: its {what} is not that of the manifest")
    for name, weights in archive.manifest["weights"].items():
        missing = [key for key in ("file", "card") if weights[key] not in archive.files]
        found += [f"the {key} of the weights {name} is not in the manifest" for key in missing]
        if not missing and (archive.path / weights["file"]).is_file():
            found += _misfits(archive, weights)
    if not found and readme.text(archive) != _text(archive.path / README):
        found.append(
            f"{archive.path / README} is not what the manifest says: run `lietransformer "
            "publish` to write it again"
        )
    return list(dict.fromkeys(found))


def _misfits(archive: Archive, weights: dict[str, str]) -> list[str]:
    """What is wrong with names and shapes of weights: the hash says only that they are the same."""
    from lietransformer.archive.weights import misfit  # noqa: PLC0415 (imports torch)

    config = (read_json(archive.path / weights["run"] / "config.json") or {}).get("config")
    if not isinstance(config, dict):
        return [f"the run of the weights {weights['file']} is not in the archive"]
    try:
        reason = misfit(archive.path / weights["file"], config)
    except UserError as error:
        reason = str(error)
    return [] if reason is None else [reason]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
