"""Which models can be stacked so that each has the numbers of a separate run."""

from lietransformer.groups import get_group
from lietransformer.models.base import LiftedModelConfig
from lietransformer.models.specialists import SpecialistConfig
from lietransformer.training.experiment import Experiment
from lietransformer.training.random_buffers import DrawingAhead


def reason_against(experiment: Experiment) -> str | None:
    """Why models of an experiment cannot be stacked; None if they can."""
    config = experiment.config
    if isinstance(config.preset().config, SpecialistConfig):
        return f"what {config.model} computes depends on numbers, not on shapes"
    if any(getattr(module, "updates_buffers", False) for module in experiment.model.modules()):
        return f"{config.model} learns averages of what it sees, beside its parameters"
    if config.precision == "bf16":
        return "in bf16 torch cannot stack all operations, such as those of a force"
    draws_nothing = experiment.sampling(0) is None
    return None if draws_nothing else _reason_against_drawing_ahead(experiment)


def _reason_against_drawing_ahead(experiment: Experiment) -> str | None:
    """Why a padded batch could not have the random numbers of the batch that it was."""
    config = experiment.config
    settings = config.preset().config
    if config.task == "springs":
        return f"{config.model} draws random numbers anew for each trajectory"
    if not isinstance(settings, LiftedModelConfig):
        return f"nothing is known of what {config.model} draws at random"
    random_parts = settings.lift.is_random + settings.neighbourhood.is_random
    drawing = DrawingAhead(experiment.task, experiment.predictor)
    if len(drawing.requests(experiment.largest_batch())) > random_parts:
        return "neighbours are chosen in several parts, which depend on the size of a batch"
    if _order_of_neighbours_depends_on_size(experiment, settings):
        return "neighbours are sampled in another order where a ball holds everything"
    return None


def _order_of_neighbours_depends_on_size(
    experiment: Experiment, settings: LiftedModelConfig
) -> bool:
    """Whether padding could change a sample of neighbours.

    Those in a ball come in the order of their distance, but in that of the points where it holds
    all of them. A number drawn for the third neighbour would then be that of another one.
    """
    neighbourhood, sizes = settings.neighbourhood, experiment.train.examples.sizes
    if neighbourhood.samples is None or neighbourhood.ball is None:
        return False
    if neighbourhood.radius is not None:
        return False  # always by distance
    if sizes is None:
        return True  # or not known
    counts = sizes * settings.lift.samples_for(get_group(settings.group))
    fits = (counts > neighbourhood.samples) & (counts <= neighbourhood.ball)
    return bool(fits.any() and counts.max() > neighbourhood.ball)
