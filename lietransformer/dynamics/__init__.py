"""Dynamical systems: their equations of motion and their integration in time."""

from lietransformer.dynamics.hamiltonian import (
    DirectDynamics,
    HamiltonianDynamics,
    LearntDynamics,
    PotentialDynamics,
)
from lietransformer.dynamics.rollout import VectorField, rollout, runge_kutta_step, trajectory
from lietransformer.dynamics.springs import SpringSystem, systems_last

__all__ = [
    "DirectDynamics",
    "HamiltonianDynamics",
    "LearntDynamics",
    "PotentialDynamics",
    "SpringSystem",
    "VectorField",
    "rollout",
    "runge_kutta_step",
    "systems_last",
    "trajectory",
]
