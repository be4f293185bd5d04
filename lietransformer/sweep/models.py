"""The check of a sweep's models, which imports torch."""

from pathlib import Path

from lietransformer.errors import UserError
from lietransformer.settings import validated
from lietransformer.sweep.plan import Plan
from lietransformer.training.config import RunConfig


def require_valid_models(plan: Plan) -> None:
    """Refuse changes of a model's architecture that do not fit it."""
    for each in plan.configurations:
        settings = each.settings
        on = "cuda" if settings["precision"] == "tf32" or settings.get("graphs") else "cpu"
        how = {"seed": 0, "threads": 1, "device": on}
        try:
            validated(RunConfig, {**settings, **how}, Path("config.yaml"))
        except UserError as error:
            message = str(error).removeprefix("in config.yaml: ")
            where = f"{each.task}, {settings['model']}"
            raise UserError(f"in config.yaml, {where}: {message}") from error
