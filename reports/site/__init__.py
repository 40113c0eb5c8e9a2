"""A static site over many runs: who keeps which rule, and what changed since when."""
