"""Figures of time and memory, which the paper does not have."""
