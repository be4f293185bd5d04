"""Claims 14 to 16: Figures 7 and 8."""

from lietransformer.analysis.claims.samples import AT_PAR, FEWEST_SEEDS, Sample, is_lower
from lietransformer.analysis.claims.verdict import Claim, Finding, all_hold
from lietransformer.analysis.runs import Sweep
from lietransformer.analysis.variants import ARCHITECTURES, VARIANTS, variant_runs

_LENGTHS = {"test": "5 steps", "test_long": "100 steps"}


def _sample(sweep: Sweep, architecture: str, variant: str, test_set: str = "test") -> Sample:
    runs = variant_runs(sweep, architecture, variant)
    return Sample.of(f"{architecture}-{variant}", runs, f"final/{test_set}/mse_geometric")


def _attention_beats_convolution(sweep: Sweep) -> Finding:
    conditions = []
    for test_set, length in _LENGTHS.items():
        for variant in VARIANTS:
            ours, theirs = (_sample(sweep, name, variant, test_set) for name in ARCHITECTURES)
            conditions.append(is_lower(ours, theirs, length))
    return all_hold(conditions)


def _rotations_help(sweep: Sweep) -> Finding:
    at_par = [
        is_lower(
            _sample(sweep, name, "SE2 small"), _sample(sweep, name, "T2"), name, factor=1 / AT_PAR
        )
        for name in ARCHITECTURES
    ]
    best = _sample(sweep, "LieTransformer", "SE2 small")
    others = [
        is_lower(best, _sample(sweep, name, variant), "best of all")
        for name in ARCHITECTURES
        for variant in VARIANTS
        if (name, variant) != ("LieTransformer", "SE2 small")
    ]
    return all_hold([*at_par, *others])


def _size_matters(sweep: Sweep) -> Finding:
    large, small = (
        {name: _sample(sweep, name, variant) for name in ARCHITECTURES}
        for variant in ("T2", "T2 small")
    )
    return all_hold(
        [
            is_lower(large["LieTransformer"], small["LieTransformer"], "larger helps"),
            is_lower(small["LieConv"], large["LieConv"], "larger harms"),
        ]
    )


CLAIMS = (
    Claim(
        14,
        "For a fixed group and size, LieTransformer beats LieConv.",
        "§4.3, Figures 7 and 8",
        "Its median error is lower for both groups, both sizes, and after 5 and 100 steps; "
        f"{FEWEST_SEEDS} seeds at least.",
        _attention_beats_convolution,
    ),
    Claim(
        15,
        "SE(2) models are at par with or better than T(2) models with more parameters, and "
        "LieTransformer-SE2 with 139k parameters is the best of all.",
        "§4.3, Figure 7",
        f"For both architectures the median 5-step error of the small -SE2 is below {AT_PAR} times "
        "that of the large -T2, and that of the small LieTransformer-SE2 is the lowest of all; "
        f"{FEWEST_SEEDS} seeds at least.",
        _rotations_help,
    ),
    Claim(
        16,
        "A larger model helps LieTransformer-T2 and harms LieConv-T2.",
        "§4.3, Figure 7",
        "The median 5-step error of the large LieTransformer-T2 is below that of the small one, "
        f"and that of LieConv-T2 above; {FEWEST_SEEDS} seeds at least.",
        _size_matters,
    ),
)
