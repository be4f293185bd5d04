"""Several seeds of one configuration trained as one model on a GPU."""
