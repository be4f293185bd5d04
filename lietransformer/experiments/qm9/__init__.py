"""Properties of small organic molecules (§4.2, Table 2)."""
