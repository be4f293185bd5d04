"""An example of lifting, Ĥ and a neighbourhood, computed to be drawn (Figure 2)."""
