"""What a person sees of a run: a bar, a line for each evaluation, a table at the end."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from lietransformer.progress import progress
from lietransformer.training.checkpoint import Progress
from lietransformer.training.config import RunConfig

log = logging.getLogger(__name__)


class Display:
    """The bar on a terminal, and lines in a log."""

    def __init__(
        self, config: RunConfig, total_steps: int, step: int, seeds: Sequence[int] = ()
    ) -> None:
        """Show a run, or several with these seeds that are trained at once."""
        self._epochs = config.epochs
        self._names_seeds = len(seeds) > 1
        who = f"seeds {', '.join(map(str, seeds))}" if seeds else f"seed {config.seed}"
        self._bar: tqdm[Any] = progress(
            total=total_steps, description=f"{config.model} {who}", unit=" steps"
        )
        self._bar.unit_scale = False  # 6/60 steps, not 6.00/60.0
        self._bar.update(step)
        # Time left is to be told by the steps of this session.
        self._bar.initial = step
        self._redirect = logging_redirect_tqdm(loggers=[logging.getLogger("lietransformer")])
        self._metric = ""

    def __enter__(self) -> "Display":
        self._redirect.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.close()
        self._redirect.__exit__(*error)

    def step(self, state: Progress) -> None:
        """A step was done."""
        if not self._bar.disable:
            mean = state.loss_sum / max(1, state.loss_count)
            self._bar.set_postfix_str(f"loss {mean:.3g}{self._metric}", refresh=False)
        self._bar.update()

    def record(self, record: dict[str, Any], selection: str, *, is_best: bool, seed: int) -> None:
        """An evaluation was done."""
        value = record[f"validation/{selection}"]
        self._metric = f", {selection} {value:.3g}"
        log.info(
            "%sepoch %.5g of %d, step %d: loss %.4g, validation %s %.4g%s",
            f"seed {seed}, " if self._names_seeds else "",
            record["epoch"],
            self._epochs,
            record["step"],
            record["train/loss"],
            selection,
            value,
            " (best so far)" if is_best else "",
        )


def summary(result: dict[str, Any]) -> str:
    """The result as a short table."""
    what = (result["task"], result["target"], result["model"], f"n = {result['n_train']:,}")
    lines = [" · ".join(str(part) for part in (*what, f"seed {result['seed']}") if part)]
    if result["status"] == "diverged":
        lines.append(f"DIVERGED: {result['diverged']['what']}")
    seconds = result["seconds"].get("training", 0.0)
    speed = f", {result['steps'] / seconds:.3g} steps/s" if seconds else ""
    lines.append(
        f"{result['parameters']:,} parameters, {result['steps']:,} steps "
        f"({result['epochs']:.5g} epochs) in {seconds:,.0f} s{speed}"
    )
    selection = f"validation/{result['selection']}"
    validation = {
        which: {"validation": {result["selection"]: (result[which] or {}).get(selection)}}
        for which in result["test"]
    }
    tests = {which: validation[which] | tests for which, tests in result["test"].items()}
    return "\n".join([*lines, table(tests)])


def table(tests: dict[str, Any]) -> str:
    """Metrics of test sets in rows, sets of weights in columns."""
    columns = list(tests)
    lines = ["  ".join([f"{'':<30}", *(f"{which + ' weights':>15}" for which in columns)])]
    for test, metrics in tests[columns[0]].items():
        for metric in metrics:
            values = (tests[which][test][metric] for which in columns)
            # Not finite, or read from a file, where such a number is null.
            cells = (f"{v:.5g}" if v is not None and isfinite(v) else "–" for v in values)
            lines.append("  ".join([f"{test + ' ' + metric:<30}", *(f"{c:>15}" for c in cells)]))
    return "\n".join(lines)


@contextmanager
def logging_to_stderr(level: int = logging.INFO) -> Iterator[None]:
    """Show the package's messages inside the block, each with the time."""
    logger = logging.getLogger("lietransformer")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s", datefmt="%H:%M:%S"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
