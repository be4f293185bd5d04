"""Which examples are for training, validation and testing."""

import numpy as np

from lietransformer.errors import UserError


def nested_ranges(count: int, *, train: int, validation: int, test: int) -> dict[str, range]:
    """Springs: the first n train, the last ones test, min(n, validation) before them validate.

    Args:
        count: number of systems.
        train: n; training sets of different n are nested.
        validation: the most that validation uses.
        test: number of test systems.
    """
    largest = largest_training_set(count, validation, test)
    validating = min(train, validation)
    if not 1 <= train <= largest:
        raise UserError(
            f"the training set must have 1 to {largest:,} of the {count:,} systems, got {train:,}. "
            "Use fewer, or generate a dataset of more systems."
        )
    return {
        "train": range(train),
        "validation": range(count - test - validating, count - test),
        "test": range(count - test, count),
    }


def largest_training_set(count: int, validation: int, test: int) -> int:
    """The largest n for which n systems, min(n, validation) more and the test systems exist."""
    rest = count - test
    return rest - validation if rest >= 2 * validation else rest // 2


def random_split(count: int, *, train: int, test: int, seed: int) -> dict[str, np.ndarray]:
    """QM9, by Cormorant's rule: a random permutation, cut into train, validation and test."""
    if test < 1 or train + test >= count:
        raise UserError(
            f"{count:,} molecules are too few for {train:,} to train, some to validate and "
            f"{max(1, test):,} to test. Lower the setting train, or raise test_fraction."
        )
    # The generator is NumPy's old one, because the published split was made with it.
    order = np.random.RandomState(seed).permutation(count)
    train_part, validation_part, test_part = np.split(order, [train, count - test])
    return {"train": train_part, "validation": validation_part, "test": test_part}
