"""Training: one engine for the three experiments."""
