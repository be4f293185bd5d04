"""Environments for conda and containers, and the program that keeps their versions."""
