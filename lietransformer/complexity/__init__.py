"""What LieSelfAttention and LieConv cost: time and memory, measured (App. G, claim 18)."""
