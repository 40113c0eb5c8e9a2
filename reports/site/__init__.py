"""A static site over many runs: who keeps which rule, what changed, and since when."""
