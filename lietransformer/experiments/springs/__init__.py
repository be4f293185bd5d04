"""Hamiltonian dynamics of particles joined by springs (§4.3, Figures 4 to 11)."""
