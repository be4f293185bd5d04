"""The JSON schema of config.yaml, for editors: python -m lietransformer.sweep.schema FILE."""

import json
import sys
from pathlib import Path

from lietransformer.sweep.config import SweepConfig


def schema() -> str:
    """The schema of what the typed settings take; every key may be left to the tier."""
    whole = SweepConfig.model_json_schema()
    for part in (whole, *whole["$defs"].values()):
        part.pop("required", None)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema(), encoding="utf-8")
