"""The experiments of the paper, a folder each, and the registry of what they make."""
