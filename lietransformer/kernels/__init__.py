"""Loops in C that PyTorch can only run as many passes over memory, and their compilation."""
