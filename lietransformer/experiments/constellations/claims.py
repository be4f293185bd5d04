"""Claims 1, 2, 3, 19 and 20: Table 1."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from lietransformer.experiments.constellations.tables import MODELS, PAPER_SEEDS, SETTINGS, metric
from lietransformer.report.claims.protocol import collect
from lietransformer.report.claims.rules import Ruling, all_of, equivalent, every, every_one, tally
from lietransformer.report.claims.samples import ACCURACY, Sample, compare
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement, Needs
from lietransformer.report.runs import Sweep

Cell = tuple[str, str, str]  # model, augmentation of the training set, test set
Cells = Mapping[Cell, Sample]

SET_TRANSFORMER, T2, SE2 = MODELS
INVARIANT = (T2, SE2)
ALL_MOVED = "T2_all"  # every test example translated, evaluated with the same lift samples
EXACT = 0.005  # half of the last digit that the table prints
UNCHANGED = 0.03  # the paper's standard deviation of LieTransformer-T2 over seeds
_TABLE = {(model, *setting) for model in MODELS for setting in SETTINGS}


def _gather(wanted: Collection[Cell]) -> Callable[[Sweep], Evidence]:
    def gather(sweep: Sweep) -> Evidence:
        chosen = {
            cell: (
                cell[0],
                sweep.select("constellations", model=cell[0], augmentation=cell[1]),
                metric(cell[2]),
            )
            for cell in sorted(wanted)
        }
        return collect(sweep, chosen, ACCURACY, PAPER_SEEDS)

    return gather


def _sample(cells: Cells, cell: Cell) -> Sample:
    return cells.get(cell, Sample(cell[0], {}))


def _invariant_to_translation(cells: Cells) -> Judgement:
    changes = compare(
        ACCURACY,
        (
            (f"{model}, every example translated", _sample(cells, (model, "none", ALL_MOVED)),
             _sample(cells, (model, "none", "none")))
            for model in INVARIANT
        ),
    )  # fmt: skip
    largest = max(
        (abs(gap) for own in changes for gap in own.gaps if math.isfinite(gap)), default=0.0
    )
    return Judgement(
        all_of([equivalent(own, EXACT) for own in changes]),
        f"changes by {largest:.4f} at most",
        changes,
    )


def _beat_set_transformer(cells: Cells) -> Judgement:
    columns = [setting for setting in SETTINGS for _ in INVARIANT]
    compared = compare(
        ACCURACY,
        (
            (_column(augmentation, test), _sample(cells, (model, augmentation, test)),
             _sample(cells, (SET_TRANSFORMER, augmentation, test)))
            for augmentation, test in SETTINGS
            for model in INVARIANT
        ),
    )  # fmt: skip
    known = [own for own in compared if own.outcome is not None]
    reductions = () if len(known) == len(compared) else (f"{len(known)} of 12 comparisons",)
    smallest = min((own for own in known if own.gaps), key=lambda own: own.gap, default=None)
    ours = tally(compared)
    if smallest:
        ours += f"; smallest lead {smallest.interval} ({smallest.first.name}, {smallest.where})"
    # With fewer augmentations it is a smaller claim; without a model or a test set it is none.
    plain = [own for own, (augmentation, _) in zip(compared, columns, strict=True)
             if augmentation == "none"]  # fmt: skip
    return Judgement(all_of([every(compared), every_one(plain)]), ours, compared, reductions)


def _column(augmentation: str, test: str) -> str:
    """A column of Table 1 in words."""
    trained = "no augmentation" if augmentation == "none" else f"{augmentation} augmentation"
    return f"{trained}, tested on {_test_set(test)}"


def _test_set(test: str) -> str:
    return "D_test" if test == "none" else f"D_test^{test}"


def _lost(cells: Cells, model: str) -> Sample:
    """What moving the test set by SE(2) costs, by seed."""
    before = _sample(cells, (model, "none", "none")).values
    after = _sample(cells, (model, "none", "SE2")).values
    shared = before.keys() & after.keys()
    # Negative: less is better. NaN for a run that diverged, which has no accuracy to lose.
    return Sample(f"change of {model}", {seed: after[seed] - before[seed] for seed in shared})


def _rotation_costs_less(cells: Cells) -> Judgement:
    se2, t2 = _lost(cells, SE2), _lost(cells, T2)
    (compared,) = compare(ACCURACY, [("", se2, t2)])
    before, after = (_sample(cells, (T2, "none", test)) for test in ("none", "SE2"))
    (loss,) = compare(ACCURACY, [(f"loss of {T2}", before, after)])
    ruling = every([compared])
    if not compared.gaps:
        return Judgement(ruling)
    costs = [-float(np.nanmean(list(own.values.values()))) for own in (t2, se2)]
    if ruling.state == "holds" and costs[1] > costs[0] / 2:
        ruling = Ruling("undecided", "costs less, but more than half")
    if ruling.state == "holds" and not (loss.outcome == "win" and costs[0] >= ACCURACY.margin):
        ruling = Ruling("undecided", f"{T2} is not known to lose {ACCURACY.margin:g} or more")
    ours = f"costs {costs[0]:.3f} and {costs[1]:.3f}, difference {compared.interval}"
    return Judgement(ruling, ours, (compared, loss))


def _augmentation_changes_nothing(cells: Cells) -> Judgement:
    changes = compare(
        ACCURACY,
        (
            (f"{model}, D_test^T2", Sample("augmented", _sample(cells, (model, "T2", "T2")).values),
             Sample("not augmented", _sample(cells, (model, "none", "T2")).values))
            for model in INVARIANT
        ),
    )  # fmt: skip
    return Judgement(
        all_of([equivalent(own, UNCHANGED) for own in changes]),
        ", ".join(own.named for own in changes),
        changes,
    )


def _translation_slightly_better(cells: Cells) -> Judgement:
    compared = compare(
        ACCURACY,
        (
            (_test_set(test), _sample(cells, (T2, "none", test)),
             _sample(cells, (SE2, "none", test)))
            for test in ("none", "T2")
        ),
    )  # fmt: skip
    ours = ", ".join(own.named for own in compared if own.outcome is not None)
    return Judgement(every_one(compared), ours, compared)


def _needs(models: Sequence[str], augmentations: Sequence[str], what: str) -> Needs:
    labels = [
        {"task": "constellations", "model": model, "augmentation": augmentation}
        for model in models
        for augmentation in augmentations
    ]
    count = len(labels) * PAPER_SEEDS
    words = f"{count} runs of up to 300 epochs on 10,000 constellations ({what})"
    return Needs(words, labels, PAPER_SEEDS)


CLAIMS = (
    Claim(
        1,
        "Translating the test set changes the accuracy of neither LieTransformer.",
        "§4.1, Table 1",
        "0.75 and 0.75, 0.71 and 0.71",
        "An invariance check, true by construction. Every test example is translated and evaluated "
        "with the same lift samples; the 95 % interval of the change lies within "
        f"±{EXACT}, half of the last digit that the table prints, for both models.",
        _needs(INVARIANT, ["none"], "2 models × 8 seeds, no augmentation, tested on test_T2_all"),
        _gather([(model, "none", test) for model in INVARIANT for test in ("none", ALL_MOVED)]),
        _invariant_to_translation,
    ),
    Claim(
        2,
        "Both LieTransformers are more accurate than SetTransformer in every column.",
        "§4.1, Table 1",
        "12 of 12, by 0.10 to 0.31",
        "Better in all 12 comparisons, two near-ties forgiven, and worse in none. Without runs on "
        "augmented training sets, in the six others.",
        _needs(MODELS, ["none", "T2", "SE2"], "3 models × 3 augmentations × 8 seeds"),
        _gather(_TABLE),
        _beat_set_transformer,
    ),
    Claim(
        3,
        "Transforming the test set by SE(2) costs LieTransformer-SE2 much less accuracy than "
        "LieTransformer-T2.",
        "§4.1, Table 1",
        "costs 0.12 and 0.02",
        "Without augmentation the loss of -SE2 is smaller than that of -T2 and at most half of it, "
        f"and the loss of -T2 is separated from 0 and at least {ACCURACY.margin:g}.",
        _needs(INVARIANT, ["none"], "2 models × 8 seeds, no augmentation"),
        _gather([(model, "none", test) for model in INVARIANT for test in ("none", "SE2")]),
        _rotation_costs_less,
    ),
    Claim(
        19,
        "T(2) augmentation of the training set leaves the accuracy of both LieTransformers "
        "unchanged.",
        "§4.1, Table 1",
        "0.75 and 0.75, 0.71 and 0.71",
        "The 95 % interval of the change on D_test^T2, paired by seed, lies within "
        f"±{UNCHANGED} for both models: the paper's own standard deviation over seeds.",
        _needs(INVARIANT, ["none", "T2"], "2 models × 8 seeds, without and with T2 augmentation"),
        _gather([(model, own, "T2") for model in INVARIANT for own in ("none", "T2")]),
        _augmentation_changes_nothing,
    ),
    Claim(
        20,
        "LieTransformer-T2 is slightly better than LieTransformer-SE2 on D_test and D_test^T2.",
        "§4.1, Table 1",
        "+0.04 and +0.04",
        "Better on both test sets, without augmentation.",
        _needs(INVARIANT, ["none"], "2 models × 8 seeds, no augmentation"),
        _gather([(model, "none", test) for model in INVARIANT for test in ("none", "T2")]),
        _translation_slightly_better,
    ),
)  # fmt: skip
