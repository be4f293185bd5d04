"""QM9: 12 properties of small organic molecules (§4.2, App. I.2)."""

from lietransformer.data.qm9.dataset import KIND, QM9Config, generate
from lietransformer.data.qm9.properties import ELEMENTS, PROPERTIES, Property

__all__ = ["ELEMENTS", "KIND", "PROPERTIES", "Property", "QM9Config", "generate"]
