"""Claims 14, 15, 16 and 23: Figures 7 and 8, six models by group and size."""

from collections.abc import Callable, Collection, Mapping

from lietransformer.report.claims.protocol import collect, springs_needs
from lietransformer.report.claims.rules import all_of, every_one, not_worse, tally
from lietransformer.report.claims.samples import SPRINGS, Comparison, Sample, compare
from lietransformer.report.claims.verdict import Claim, Evidence, Judgement, Needs
from lietransformer.report.runs import Sweep
from lietransformer.report.sizes import PAPER_PARAMETER_SIZE, PARAMETER_SEEDS
from lietransformer.report.variants import ARCHITECTURES, comparison_size, variant_runs

Model = tuple[str, str]  # architecture, variant
Versus = tuple[Model, Model]  # the one that a claim prefers, and the other
Cells = Mapping[Model, Sample]

SMALL_T2, LARGE_T2, SMALL_SE2 = VARIANTS = ("T2 small", "T2", "SE2 small")  # the figures' six
ATTENTION, CONVOLUTION = ARCHITECTURES
MODELS = tuple((name, variant) for name in ARCHITECTURES for variant in VARIANTS)
BEST = (ATTENTION, SMALL_SE2)
_BEST_NAME = "-".join(BEST)
_BEST_OF_ALL: list[Versus] = [(BEST, model) for model in MODELS if model != BEST]


def _gather(test_set: str, models: Collection[Model] = MODELS) -> Callable[[Sweep], Evidence]:
    def gather(sweep: Sweep) -> Evidence:
        chosen = {
            (name, variant): (
                f"{name}-{variant}",
                variant_runs(sweep, name, variant),
                f"final/{test_set}/mse_geometric",
            )
            for name, variant in models
        }
        size = comparison_size(sweep)
        is_smaller = size != PAPER_PARAMETER_SIZE
        reductions = [f"n = {size:,} instead of {PAPER_PARAMETER_SIZE:,}"] if is_smaller else []
        return collect(sweep, chosen, SPRINGS, PARAMETER_SEEDS, reductions)

    return gather


def _compare(cells: Cells, *pairs: Versus) -> dict[Versus, Comparison]:
    """Each pair once, so that none counts twice in the pooled spread."""
    unique = [*dict.fromkeys(pairs)]
    samples = [
        tuple(cells.get(model, Sample("-".join(model), {})) for model in pair) for pair in unique
    ]
    compared = compare(SPRINGS, [("", first, second) for first, second in samples])
    return dict(zip(unique, compared, strict=True))


def _missing(cells: Cells) -> tuple[str, ...]:
    known = sum(model in cells for model in MODELS)
    return () if known == len(MODELS) else (f"{known} of the figure's {len(MODELS)} models",)


def _attention_beats_convolution(cells: Cells) -> Judgement:
    compared = _compare(cells, *(((ATTENTION, own), (CONVOLUTION, own)) for own in VARIANTS))
    ours = _ratios({pair[0][1]: own for pair, own in compared.items()})
    comparisons = tuple(compared.values())
    return Judgement(every_one(comparisons), ours, comparisons, _missing(cells))


def _rotations_help(cells: Cells) -> Judgement:
    at_par = [((name, SMALL_SE2), (name, LARGE_T2)) for name in ARCHITECTURES]
    compared = _compare(cells, *at_par, *_BEST_OF_ALL)
    others = [compared[pair] for pair in _BEST_OF_ALL]
    rulings = [not_worse(compared[pair], SPRINGS.margin) for pair in at_par]
    ratios = _ratios({pair[0][0]: compared[pair] for pair in at_par})
    ours = f"SE2 small against T2: {ratios}; {_BEST_NAME} {tally(others)}"
    ruling = all_of([*rulings, every_one(others)])
    return Judgement(ruling, ours, tuple(compared.values()), _missing(cells))


def _size_matters(cells: Cells) -> Judgement:
    pairs: list[Versus] = [
        ((ATTENTION, LARGE_T2), (ATTENTION, SMALL_T2)),
        ((CONVOLUTION, SMALL_T2), (CONVOLUTION, LARGE_T2)),
    ]
    compared = _compare(cells, *pairs)
    names = ("large LieTransformer-T2 against small", "small LieConv-T2 against large")
    ours = _ratios(dict(zip(names, compared.values(), strict=True)))
    # Both halves of the claim are needed.
    ruling = all_of([every_one([own]) for own in compared.values()])
    return Judgement(ruling, ours, tuple(compared.values()))


def _rotations_help_in_the_long_run(cells: Cells) -> Judgement:
    groups = [
        ((name, SMALL_SE2), (name, own)) for name in ARCHITECTURES for own in (SMALL_T2, LARGE_T2)
    ]
    compared = _compare(cells, *groups, *_BEST_OF_ALL)
    by_group, others = ([compared[pair] for pair in own] for own in (groups, _BEST_OF_ALL))
    ours = f"SE2 {tally(by_group)}; {_BEST_NAME} {tally(others)}"
    ruling = all_of([every_one(by_group), every_one(others)])
    return Judgement(ruling, ours, tuple(compared.values()), _missing(cells))


def _ratios(compared: Mapping[str, Comparison]) -> str:
    known = {name: own for name, own in compared.items() if own.outcome is not None}
    return ", ".join(f"{name} {own.interval}" for name, own in known.items())


def _needs(models: Collection[Model], what: str) -> Needs:
    names = ["-".join(model) for model in models]
    return springs_needs(names, [PAPER_PARAMETER_SIZE], PARAMETER_SEEDS, what)


_NEEDS = _needs(MODELS, "six models")
_LARGE_AND_SMALL = [model for model in MODELS if model[1] != SMALL_SE2]

CLAIMS = (
    Claim(
        14,
        "For a fixed group and size, LieTransformer beats LieConv.",
        "§4.3, Figure 7",
        "3 of 3, no numbers",
        "Its 5-step error is lower for T2 small, T2 and SE2 small, one near-tie forgiven, and "
        "higher for none. All six models are needed.",
        _NEEDS,
        _gather("test"),
        _attention_beats_convolution,
    ),
    Claim(
        15,
        "SE(2) models are at par with or better than T(2) models with more parameters, and "
        "LieTransformer-SE2 with 139k parameters is the best of the six.",
        "§4.3, Figure 7",
        "best of 6, no numbers",
        "For both architectures the 95 % interval of the 5-step error of the large -T2 over that "
        "of the small -SE2 lies above 1/1.5 (at par or better). The small LieTransformer-SE2 has a "
        "lower error than the five others, one near-tie forgiven.",
        _NEEDS,
        _gather("test"),
        _rotations_help,
    ),
    Claim(
        16,
        "A larger model helps LieTransformer-T2 and harms LieConv-T2.",
        "§4.3, Figure 7",
        "no numbers",
        "The 5-step error of the large LieTransformer-T2 is below that of the small one, and that "
        "of LieConv-T2 above.",
        _needs(_LARGE_AND_SMALL, "four T2 models"),
        _gather("test", _LARGE_AND_SMALL),
        _size_matters,
    ),
    Claim(
        23,
        "Over 100 steps SE(2) models beat T(2) models, and LieTransformer-SE2 with 139k parameters "
        "is the best of the six.",
        "Appendix I.3, Figure 8",
        "best of 6, no numbers",
        "For both architectures the 100-step error of the small -SE2 is lower than that of both "
        "-T2, and the small LieTransformer-SE2 has a lower one than the five others, one near-tie "
        "forgiven in each.",
        _NEEDS,
        _gather("test_long"),
        _rotations_help_in_the_long_run,
    ),
)
