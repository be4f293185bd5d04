"""Lie groups and their discrete subgroups (paper, §2 and App. F)."""

from lietransformer.groups.base import Group, PairFeatures
from lietransformer.groups.registry import get_group, group_names, register_group

__all__ = ["Group", "PairFeatures", "get_group", "group_names", "register_group"]
