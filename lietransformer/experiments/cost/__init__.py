"""Time and memory of LieSelfAttention and LieConv (App. G)."""
