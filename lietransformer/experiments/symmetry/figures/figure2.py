"""Figure 2: lifting, the sample Ĥ, and a neighbourhood, for SE(2) acting on the plane."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lietransformer.files import read_json
from lietransformer.report.figures.drawing import Drawing
from lietransformer.report.figures.style import PAGE, PARTICLES, new_figure, say_nothing_to_draw
from lietransformer.report.provenance import short_commit
from lietransformer.report.runs import Sweep

log = logging.getLogger(__name__)

_CHOSEN, _NEIGHBOUR, _OTHER = "#D55E00", "#0072B2", "#B5B5B5"
_WHAT = "the example of `lietransformer lifting`"
_CAPTION = (
    "Lifting, sampling and subsampling for SE(2) acting on the plane. From left to right: points; "
    "each lifted to all elements of the group that move the origin there, a circle of angles; "
    "the sample of each circle; the neighbourhood of one element (orange), and what is drawn from "
    "it (filled), which self-attention sees. Computed by the code that models use."
)


def draw(sweep: Sweep) -> Drawing:
    """Four steps from points to a neighbourhood."""
    figure = new_figure(PAGE, 2.4)
    nothing = sweep.runs.iloc[:0]
    path = sweep.measurements.get("lifting")
    content = read_json(path) if path is not None and path.exists() else None
    try:
        if content is None:
            raise KeyError("elements")
        figure.set_layout_engine("none")  # its parts are placed by hand
        origin = _draw(figure, content)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if content is not None:
            log.warning("%s is left out: it cannot be read (%s)", path, error)
        figure.clear()
        say_nothing_to_draw(figure.subplots(), _WHAT)
        return Drawing(figure, _CAPTION, nothing, [_WHAT])
    assert path is not None
    return Drawing(figure, _CAPTION, nothing, origin=[f"Example: {path.name}.", origin])


@dataclass(frozen=True, eq=False)
class Lifting:
    """Points, their lift, and the neighbourhood of one element."""

    points: np.ndarray
    elements: np.ndarray
    chosen: int
    ball: np.ndarray
    sample: np.ndarray


def parse(content: dict[str, Any]) -> Lifting:
    """A measurement as `lietransformer lifting` writes it."""
    ball, sample = (np.array(content[name], dtype=int) for name in ("ball", "sample"))
    points = np.array(content["points"], dtype=float).reshape(-1, 2)
    elements = np.array(content["elements"], dtype=float).reshape(-1, 3)
    chosen = int(content["chosen"])
    indices = np.array([chosen, *ball, *sample])
    if not len(points) or len(elements) % len(points) or not (indices < len(elements)).all():
        raise ValueError("points, elements and neighbours do not fit each other")
    return Lifting(points, elements, chosen, ball, sample)


def _draw(figure: Figure, content: dict[str, Any]) -> str:
    read = parse(content)
    points, elements, chosen = read.points, read.elements, read.chosen
    ball, sample = read.ball, read.sample
    colours = [PARTICLES[i % len(PARTICLES)] for i in range(len(points))]
    of_each = np.repeat(np.arange(len(points)), len(elements) // len(points))
    by_point = [colours[i] for i in of_each]

    plane = figure.add_axes((0.065, 0.25, 0.175, 0.53))
    x, y = points.T
    plane.scatter(x, y, c=colours, s=24)
    plane.set(xlabel="$x$", ylabel="$y$", aspect="equal")
    _title(figure, 0.15, "points $x_i$")
    plane.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=(-1, 0, 1), yticks=(-1, 0, 1))

    circles = _space(figure, 0.38, "lifted to $s(x_i)H$")
    sampled = _space(figure, 0.62, r"sampled: $s(x_i)\hat{H}$")
    for axis, faint in ((circles, 1.0), (sampled, 0.3)):
        for (x, y), colour in zip(points, colours, strict=True):
            axis.plot([x, x], [y, y], [-math.pi, math.pi], color=colour, alpha=faint, linewidth=1.3)
    sampled.scatter(*elements.T, c=by_point, s=12, depthshade=False)

    near = _space(figure, 0.86, "a neighbourhood")
    others = np.setdiff1d(np.arange(len(elements)), [*ball, chosen])
    # The element itself is in its own ball; it is drawn once, as itself.
    left_out = np.setdiff1d(ball, [*sample, chosen])
    drawn = np.setdiff1d(sample, [chosen])
    near.scatter(*elements[others].T, c=_OTHER, s=6, depthshade=False)
    near.scatter(
        *elements[left_out].T, facecolors="white", edgecolors=_NEIGHBOUR, s=16, depthshade=False
    )
    near.scatter(*elements[drawn].T, c=_NEIGHBOUR, s=16, depthshade=False)
    near.scatter(*elements[[chosen]].T, c=_CHOSEN, marker="D", s=26, depthshade=False)
    commit = content.get("git_commit")
    return f"Commit: {short_commit(commit) if commit else 'unknown'}."


def _title(figure: Figure, middle: float, text: str) -> None:
    figure.text(middle, 0.9, text, ha="center", fontsize=8)


def _space(figure: Figure, middle: float, title: str) -> Any:
    """SE(2) by its coordinates: where the origin goes, and the angle."""
    # Placed by hand: a layout would reserve the room that a cube needs from all sides.
    axis: Any = figure.add_axes((middle - 0.135, 0.11, 0.27, 0.8), projection="3d")
    _title(figure, middle, title)
    axis.patch.set_visible(False)  # it would hide labels of its neighbour
    axis.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-math.pi, math.pi))
    axis.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    axis.set_zticks((-math.pi, 0, math.pi), labels=(r"$-\pi$", "0", r"$\pi$"))
    _label(axis, ("$x$", "$y$", r"$\theta$"))
    axis.set_box_aspect((1, 1, 1.1), zoom=0.85)
    axis.view_init(elev=18, azim=-62)
    return axis


def _label(axis: Any, names: Sequence[str]) -> None:
    for which, name in zip("xyz", names, strict=True):
        axis.tick_params(axis=which, pad=-3, labelsize=6)
        getattr(axis, f"set_{which}label")(name, labelpad=-9)
