"""Layers on lifted point clouds."""

from lietransformer.nn.attention import AttentionConfig, LieSelfAttention
from lietransformer.nn.block import LieTransformerBlock
from lietransformer.nn.pooling import LinearThenPool, PoolThenMLP, masked_mean

__all__ = [
    "AttentionConfig",
    "LieSelfAttention",
    "LieTransformerBlock",
    "LinearThenPool",
    "PoolThenMLP",
    "masked_mean",
]
