"""The invariants, one declaration each; every module lists its own in ``INVARIANTS``."""
