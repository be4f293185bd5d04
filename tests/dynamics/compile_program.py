"""The force of every small model of springs as one compiled graph, with its gradient.

By the front end of the compiler and automatic differentiation; generating code for each of
them would take too long.
"""

import torch

from lietransformer.dynamics import (
    DirectDynamics,
    HamiltonianDynamics,
    LearntDynamics,
    PotentialDynamics,
)
from lietransformer.experiments.registry import presets

DYNAMICS: dict[str, type[LearntDynamics]] = {
    "potential": PotentialDynamics,
    "hamiltonian": HamiltonianDynamics,
    "velocity": DirectDynamics,
}


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    state = torch.randn(3, 2, 6, 2, generator=generator, dtype=torch.float64)
    masses = 0.5 + torch.rand(3, 6, generator=generator, dtype=torch.float64)
    stiffness = torch.rand(3, 6, generator=generator, dtype=torch.float64)
    chosen = [p for p in presets() if p.task == "springs"]
    chosen = [p for p in chosen if not p.group or p.model.endswith("small")]
    assert len(chosen) == 8
    for preset in chosen:
        torch._dynamo.reset()
        dynamics = DYNAMICS[preset.predicts](preset.build(seed=0).double())
        compiled = torch.compile(dynamics, backend="aot_eager", fullgraph=True)
        results = []
        for field in (dynamics, compiled):
            output = field(state, masses, stiffness)
            parameters = [p for p in dynamics.parameters() if p.requires_grad]
            gradients = torch.autograd.grad(
                output.square().sum(), parameters, allow_unused=True, materialize_grads=True
            )
            results.append((output, *gradients))
        torch.testing.assert_close(results[1], results[0], msg=preset.model)


if __name__ == "__main__":
    main()
