"""Where the molecules of QM9 come from."""
