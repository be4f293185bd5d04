"""The paper's three experiments as tasks: from examples to inputs, losses and metrics."""

from lietransformer.tasks.base import Evaluation, Task, TaskName
from lietransformer.tasks.constellations import ConstellationsTask
from lietransformer.tasks.qm9 import QM9Task
from lietransformer.tasks.springs import SpringsTask

__all__ = ["ConstellationsTask", "Evaluation", "QM9Task", "SpringsTask", "Task", "TaskName"]
