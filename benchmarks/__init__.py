"""Measurements of speed, memory and disk. Nothing here is a test: machines differ."""
