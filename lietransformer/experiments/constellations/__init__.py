"""Counting patterns of points in the plane (§4.1, Table 1)."""
