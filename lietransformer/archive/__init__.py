"""The archive of published runs: `results/published`, in git with the code."""
