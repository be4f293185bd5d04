"""What is swept: from config.yaml to the datasets and runs that the workflow has to make."""

from lietransformer.sweep.config import SweepConfig
from lietransformer.sweep.jobs import Pack
from lietransformer.sweep.plan import Plan

__all__ = ["Pack", "Plan", "SweepConfig"]
