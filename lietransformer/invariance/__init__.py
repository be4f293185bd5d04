"""How far a LieTransformer is from invariance, by the number of its lift samples (Figure 3)."""
