"""The force of a learnt potential and the gradient of that force, pass by pass, on a CPU.

Training on trajectories needs, at every state of a roll-out, the force −∂V/∂q, and later the
gradient of λ·∂V/∂q by parameters and positions, for the λ that comes back from the loss. That is
the gradient of a tangent of V: of its change when the positions move along λ. So every operation
of the network has four passes: value, gradient, tangent, gradient of the tangent. Each reuses
what the passes before have kept, and none of the work is done twice. They are C code.
"""

from lietransformer.kernels.potential.conditions import applies, written_for
from lietransformer.kernels.potential.potential import Potential
from lietransformer.kernels.potential.replacement import compute, supported

__all__ = ["Potential", "applies", "compute", "supported", "written_for"]
