"""Trained models: safetensors files with model cards in the archive, and `load_model`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from lietransformer.archive.cards import model_card
from lietransformer.errors import UserError
from lietransformer.layout import FOLDER, Archive, run_name, sha256
from lietransformer.settings import validated
from lietransformer.training.config import RunConfig
from lietransformer.training.run_folder import RunFolder

# The models whose weights are published, 25 MB in all: one seed each. The graph network alone
# would have 12 MB.
HEADLINES = (
    "constellations/LieTransformer-T2",
    "constellations/LieTransformer-SE2",
    "constellations/SetTransformer",
    "springs/LieTransformer-T2/n100",
    "springs/LieTransformer-T2 small/n100",
    "springs/LieTransformer-SE2 small/n100",
    "springs/LieConv-T2/n100",
    "springs/LieConv-T2 small/n100",
    "springs/LieConv-SE2 small/n100",
    "springs/Fully-connected (Hamiltonian)/n100",
)
_WHICH = "best"


def load_model(
    name: str | Path, *, weights: str = _WHICH, archive: str | Path | None = None
) -> nn.Module:
    """A trained model, in evaluation mode on the CPU.

    Args:
        name: of a published model, such as "springs/LieTransformer-T2/n100", or the folder of a
            run.
        weights: "best" (on the validation set) or "final"; published models have the best only.
        archive: the archive; by default results/published of the working directory or, if there
            is none, of the project's checkout.
    """
    if not isinstance(name, str | Path):
        raise UserError(
            f"load_model takes the name of a published model or a run folder, got {name!r}."
        )
    folder = RunFolder(Path(name))
    if folder.model_file.exists():
        return _built(folder.config(), folder.weights(weights), str(folder.model_file))
    found = _find(archive)
    published = found.manifest["weights"]
    entry = published.get(str(name).rstrip("/")) or next(
        (own for own in published.values() if _is_folder_of(found, own, folder.path)), None
    )
    if entry is None:
        raise UserError(
            f"{name} is neither a run folder with weights nor a published model. Published models "
            f"in {found.path}: {', '.join(sorted(published)) or 'none'}."
        )
    if weights != entry["weights"]:
        raise UserError(f"{name} was published with its {entry['weights']} weights only.")
    path = found.path / entry["file"]
    known = found.files.get(entry["file"], {})
    if not path.is_file() or sha256(path) != known.get("sha256"):
        raise UserError(
            f"{path} is missing or damaged. Restore it with `git checkout -- {path.parent}`."
        )
    state, metadata = _read(path)
    try:
        config = json.loads(metadata["config"])
    except (KeyError, ValueError) as error:
        raise UserError(f"{path} does not say which model its weights are of.") from error
    return _built(validated(RunConfig, config), state, str(path))


def _is_folder_of(archive: Archive, entry: Mapping[str, str], folder: Path) -> bool:
    return (archive.path / entry["run"]).resolve() == folder.resolve()


def export_headlines(results: Path, manifest: dict[str, Any], stage: Path) -> list[str]:
    """Stage the weights of headline models that are not published yet; the new files.

    Args:
        results: with the full run folders.
        manifest: of the archive, new runs included; the weights are added to it.
        stage: where new files go.
    """
    written = []
    runs = sorted(manifest["runs"].items(), key=lambda item: item[1]["seed"])
    for name in HEADLINES:
        ready = (
            folder
            for folder, run in runs
            if run_name(run) == name
            and run["status"] == "finished"
            and (results / folder / "model.pt").exists()
        )
        folder = next(ready, None)
        if name in manifest["weights"] or folder is None:
            continue
        stem = "".join(c if c.isalnum() or c in "+-" else "-" for c in name).replace("--", "-")
        file, card = (f"weights/{stem.strip('-')}.{ending}" for ending in ("safetensors", "md"))
        entry = {"file": file, "card": card, "run": folder, "weights": _WHICH}
        run = RunFolder(results / folder)
        (stage / "weights").mkdir(exist_ok=True)
        metadata = {
            "config": json.dumps(run.config().model_dump(mode="json")),
            "constants": json.dumps(run.read_config_json().get("constants", {})),
            "run": folder,
            "git_commit": manifest["runs"][folder]["git_commit"],
        }
        state = {key: value.contiguous() for key, value in run.weights(_WHICH).items()}
        _built(run.config(), state, str(run.model_file))  # an error if they do not fit
        save_file(state, stage / file, metadata)
        _sort_header(stage / file)
        text = model_card(name, entry, manifest["runs"][folder], run.result(), metadata)
        (stage / card).write_text(text, encoding="utf-8")
        manifest["weights"][name] = entry
        written += [file, card]
    return written


def _sort_header(path: Path) -> None:
    """The same weights give the same bytes: safetensors writes metadata in a random order."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[end:])


def _find(given: str | Path | None) -> Archive:
    places = (Path("results", FOLDER), Path(__file__).parents[2] / "results" / FOLDER)
    paths = places if given is None else (Path(given),)
    archives = [Archive(path) for path in paths]
    found = next((own for own in archives if own.exists or own.has_lost_manifest), None)
    if found is None:
        raise UserError(
            f"No archive of published runs in {' or '.join(str(path) for path in paths)}. Run this "
            "in a checkout of the project, or pass archive=."
        )
    return found


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read as safetensors ({error}).") from error


def require_fit(path: Path, config: RunConfig) -> None:
    """Refuse weights in a file that are not those of a model with these settings.

    Reads only the header of the file.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read as safetensors ({error}).") from error
    _require_shapes(config, config.preset().build(seed=config.seed), shapes, str(path))


def _require_shapes(
    config: RunConfig, model: nn.Module, shapes: Mapping[str, tuple[int, ...]], source: str
) -> None:
    own = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    wrong = sorted({*own} ^ {*shapes})
    wrong += [key for key in own if key in shapes and own[key] != shapes[key]]
    if wrong:
        raise UserError(
            f"The weights in {source} do not fit {config.task}/{config.model}: "
            f"{', '.join(wrong[:3])}{' and others' if wrong[3:] else ''} have another shape or are "
            "missing. They belong to another model."
        )


def _built(config: RunConfig, state: Mapping[str, Tensor], source: str) -> nn.Module:
    model = config.preset().build(seed=config.seed)
    if config.precision == "float64":
        model = model.to(torch.float64)
    shapes = {key: tuple(tensor.shape) for key, tensor in state.items()}
    _require_shapes(config, model, shapes, source)
    model.load_state_dict(dict(state))
    return model.eval()
