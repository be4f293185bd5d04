"""The three datasets of the paper: generators, the files they write, and loaders."""
