"""Figures 4 to 11."""
