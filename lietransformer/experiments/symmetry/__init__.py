"""Lifting (Figure 2) and the invariance error of models that are not trained (Figure 3)."""
