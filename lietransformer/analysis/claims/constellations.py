"""Claims 1 to 3: Table 1."""

from collections.abc import Iterator

from lietransformer.analysis.claims.samples import FEWEST_SEEDS, Sample, is_higher
from lietransformer.analysis.claims.verdict import Claim, Condition, Finding, all_hold
from lietransformer.analysis.runs import Sweep, numbers, without_number
from lietransformer.analysis.tables.table1 import MODELS, SETTINGS, metric

_SET, _T2, _SE2 = MODELS
_UNCHANGED = 0.005  # half of the last digit that the table prints


def _accuracy(sweep: Sweep, model: str, augmentation: str, transform: str) -> Sample:
    runs = sweep.select("constellations", model=model, augmentation=augmentation)
    return Sample.of(model, runs, metric(transform))


def _change(sweep: Sweep, model: str, transform: str) -> Sample:
    """What transforming the test set costs, by seed, without augmentation."""
    runs = sweep.select("constellations", model=model, augmentation="none")
    before, after = numbers(runs, metric("none")), numbers(runs, metric(transform))
    changes = {seed: before[seed] - after[seed] for seed in before.keys() & after.keys()}
    return Sample(model, changes, without_number(runs, metric(transform)))


def _invariant_to_translation(sweep: Sweep) -> Finding:
    conditions = []
    for model in (_T2, _SE2):
        changes = _change(sweep, model, "T2")
        if not changes.values:
            conditions.append(Condition(None, f"{model}: no finished run"))
            continue
        largest = max(abs(change) for change in changes.values.values())
        text = f"{model}: accuracy changes by {largest:.4f} at most (runs: {len(changes.values)})"
        conditions.append(Condition(largest <= _UNCHANGED, text))
    return all_hold(conditions)


def _beat_set_transformer(sweep: Sweep) -> Finding:
    def comparisons() -> Iterator[Condition]:
        for augmentation, transform in SETTINGS:
            baseline = _accuracy(sweep, _SET, augmentation, transform)
            for model in (_T2, _SE2):
                ours = _accuracy(sweep, model, augmentation, transform)
                yield is_higher(ours, baseline, f"trained {augmentation}, tested {transform}")

    return all_hold(list(comparisons()))


def _rotation_costs_less(sweep: Sweep) -> Finding:
    t2, se2 = _change(sweep, _T2, "SE2"), _change(sweep, _SE2, "SE2")
    before, after = t2.centre("mean"), se2.centre("mean")
    text = f"accuracy lost on average: {t2.describe('mean')}, {se2.describe('mean')}"
    if before is None or after is None:
        return all_hold([Condition(None, f"{text}; {FEWEST_SEEDS} runs of each are needed")])
    return all_hold([Condition(before > 0 and after <= before / 2, text)])


CLAIMS = (
    Claim(
        1,
        "Transforming the test set by T(2) changes the accuracy of neither LieTransformer.",
        "§4.1, Table 1",
        f"In every run without augmentation the two accuracies differ by {_UNCHANGED} at most, "
        "half of the last digit that the table prints.",
        _invariant_to_translation,
    ),
    Claim(
        2,
        "Both LieTransformers are more accurate than SetTransformer in every column.",
        "§4.1, Table 1",
        f"The mean accuracy is higher in all 12 comparisons, with {FEWEST_SEEDS} seeds at least.",
        _beat_set_transformer,
    ),
    Claim(
        3,
        "Transforming the test set by SE(2) costs LieTransformer-SE2 much less accuracy than "
        "LieTransformer-T2.",
        "§4.1, Table 1",
        "Trained without augmentation, the mean loss of -SE2 is at most half of that of -T2, "
        f"which is above zero, with {FEWEST_SEEDS} seeds at least.",
        _rotation_costs_less,
    ),
)
