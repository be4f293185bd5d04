"""Figures 2 and 3."""
