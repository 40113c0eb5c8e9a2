"""A static site over many runs: which implementation keeps which rule, and what changed when."""
