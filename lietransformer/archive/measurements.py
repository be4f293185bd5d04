"""Is a measurement or a list of prices what its name says, and can its reader read it?"""

import re
from pathlib import Path
from pkgutil import resolve_name

from lietransformer.archive.runs import require_commit, require_no_absolute_path
from lietransformer.errors import UserError
from lietransformer.experiments.registry import MEASUREMENT_READERS
from lietransformer.files import read_json
from lietransformer.layout import sha256
from lietransformer.report.prices import read_prices
from lietransformer.sweep.jobs import digest

PRICES = "prices"


def prices_name(file: Path) -> str:
    """Prices are named by their content: a file of the archive is never replaced."""
    return f"{PRICES}-{sha256(file)[:8]}.json"


def require_measurement(file: Path, name: str) -> None:
    """Refuse a file that its reader cannot read, or that was not made by a clean commit.

    Args:
        file: with a measurement or prices.
        name: of the file in the archive, such as invariance-1a2b3c4d.json.
    """
    kind = re.sub(r"-[0-9a-f]{8}\.json$", "", name)
    content = read_json(file)
    if content is None or kind not in (*MEASUREMENT_READERS, PRICES):
        raise UserError(f"{file} is not a measurement or a list of prices. Measure again.")
    if kind == PRICES:
        read_prices(file)
        expected = prices_name(file)
    else:
        try:
            resolve_name(MEASUREMENT_READERS[kind])(content)
            expected = f"{kind}-{digest(content['settings'])}.json"
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{file} is not a measurement that its reader can read "
                f"({type(error).__name__}: {error}). Measure again."
            ) from error
    if name != expected:
        raise UserError(
            f"{file} is not what its name says: by its content it is {expected}. Measure again."
        )
    require_commit(file, content.get("git_commit"))
    require_no_absolute_path(file)
