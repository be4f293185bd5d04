"""Model cards: what a published model is, what it was trained on, and how good it is."""

import json
from collections.abc import Mapping
from typing import Any

_DOES = {
    "constellations": "counts the instances (0, 1 or 2) of four patterns in a set of points: "
    "12 logits, three for each pattern",
    "springs": "predicts the potential energy of six particles joined by springs; Hamilton's "
    "equations and an integrator turn it into trajectories",
    "qm9": "predicts a property of a molecule, in standard deviations from the mean of the "
    "training molecules",
}
_LIMITS = {
    "constellations": "Trained on synthetic patterns; it has seen nothing else.",
    "springs": "Trained on systems of six particles with masses and spring constants of one "
    "distribution. A few test systems far outside the training range carry much of the error.",
    "qm9": "Trained on QM9: up to nine heavy atoms of C, N, O and F at equilibrium.",
}


def model_card(
    name: str,
    entry: Mapping[str, Any],
    run: Mapping[str, Any],
    result: Mapping[str, Any],
    metadata: Mapping[str, str],
) -> str:
    """The card of a published model as Markdown.

    Args:
        name: that `load_model` takes.
        entry: of the weights in the manifest.
        run: of the manifest.
        result: content of the run's result.json.
        metadata: of the safetensors file.
    """
    config = json.loads(metadata["config"])
    tests = result["test"].get(entry["weights"], {})
    rows = [
        f"| {test} | {metric} | {value:.4g} |"
        if value is not None
        else f"| {test} | {metric} | – |"
        for test, metrics in tests.items()
        for metric, value in metrics.items()
    ]
    examples = f"{result['n_train']:,} training examples, {result['epochs']:,.0f} epochs"
    rate = f"learning rate {config['learning_rate']:g}, batches of {config['batch_size']}"
    machine = run["machine"]
    return "\n".join(
        [
            f"# {name}",
            "",
            f"{result['model']} with {result['parameters']:,} parameters. It {_DOES[run['task']]}.",
            "",
            "```python",
            "from lietransformer import load_model",
            "",
            f'model = load_model("{name}")',
            "```",
            "",
            f"- Training: dataset `{run['dataset']}`, {examples}, Adam, {rate}, "
            f"seed {run['seed']}.",
            f"- Weights: {entry['weights']} on the validation set ({result['selection']}).",
            f"- Run: `{entry['run']}`, commit `{run['git_commit'][:10]}`, "
            f"{machine['processor']}, torch {machine['torch']}, "
            f"{run['core_hours']:.1f} core-hours.",
            f"- Limits: {_LIMITS[run['task']]}",
            "- Licence: MIT, as the code.",
            "",
            "| test set | metric | value |",
            "| --- | --- | ---: |",
            *rows,
            "",
        ]
    )
