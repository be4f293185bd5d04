"""The trajectory of Figure 6 as it moves: both models beside the truth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from lietransformer.errors import UserError
from lietransformer.experiments.springs.figures.pairs import (
    MODELS,
    Pair,
    find_pair,
    find_paths,
    pair_runs,
    trajectory_size,
)
from lietransformer.experiments.springs.figures.trajectories import share_limits
from lietransformer.experiments.springs.rollouts import CONVOLUTION, TRANSFORMER
from lietransformer.files import complete_or_absent
from lietransformer.report.figures.style import LOOKS, PARTICLES, STYLE, TRUTH, new_figure
from lietransformer.report.provenance import provenance
from lietransformer.report.runs import Sweep

_TRAIL = 12  # states
_MILLISECONDS = 60  # of each picture
_LAST_MILLISECONDS = 1500
_DPI = 100


def write_animation(sweep: Sweep, path: Path) -> None:
    """Write a GIF that loops forever."""
    size = trajectory_size(sweep)
    pair = find_pair(sweep, size)
    if pair is None:
        raise _missing(f"roll-outs of both models with the same seed at n = {size:,}")
    runs = pair_runs(sweep, [size])
    origin = " ".join(provenance(sweep, runs[runs["seed"] == pair.seed]))
    pictures = list(_pictures(sweep, pair))
    durations = [_MILLISECONDS] * (len(pictures) - 1) + [_LAST_MILLISECONDS]
    with complete_or_absent(path) as part:
        pictures[0].save(
            part,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=durations,
            loop=0,
            optimize=True,
            comment=origin,
        )


def _pictures(sweep: Sweep, pair: Pair) -> Iterator[Image.Image]:
    found = find_paths(sweep, pair, [pair.median_ratio]).get(pair.median_ratio)
    if found is None or found.truth is None:
        raise _missing("the true trajectories")
    true_path = found.truth
    paths = {}
    for model in MODELS:
        if model not in found.predicted:
            raise _missing(f"positions of {model}")
        paths[model] = np.concatenate([true_path[:1], found.predicted[model]])
    states = min(len(true_path), *(len(path) for path in paths.values()))
    with rc_context(STYLE):
        figure = new_figure(6.0, 3.4)
        figure.set_dpi(_DPI)
        axes = figure.subplots(1, 2)
        canvas: Any = FigureCanvasAgg(figure)
        for state in range(states):
            for axis, (model, path) in zip(axes, paths.items(), strict=True):
                axis.clear()
                _draw_state(axis, path, true_path, state)
                axis.set_title(LOOKS[model].label)
            share_limits(axes, true_path)
            figure.suptitle(f"{pair.size:,} training systems, step {state:3d}", fontsize=8)
            canvas.draw()
            yield _in_few_colours(canvas)


def _draw_state(axis: Axes, path: np.ndarray, truth: np.ndarray, state: int) -> None:
    """Where particles are, and where they have just been; the truth in grey."""
    # Whole paths, invisible, so that the axis limits stay fixed.
    for whole in (path, truth):
        axis.plot(whole[..., 0], whole[..., 1], alpha=0)
    since = max(0, state - _TRAIL)
    for particle, colour in zip(range(path.shape[1]), PARTICLES * 9, strict=False):
        for whole, shade, width, size in ((truth, TRUTH, 3.5, 9), (path, colour, 1.3, 5)):
            own = whole[since : state + 1, particle]
            faint = 0.25 if shade == TRUTH else 1.0
            axis.plot(*own[:, :2].T, color=shade, alpha=faint, linewidth=width)
            axis.plot(*own[-1, :2], color=shade, alpha=faint, marker="o", markersize=size)
    axis.set_aspect("equal")
    axis.tick_params(labelbottom=False, labelleft=False, length=0)


def _in_few_colours(canvas: Any) -> Image.Image:
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return picture.quantize(64, dither=Image.Dither.NONE)


def _missing(what: str) -> UserError:
    return UserError(
        f"cannot animate without {what}. Train {TRANSFORMER} and {CONVOLUTION} on springs first."
    )
