"""Chaos scenarios, and which invariants each must exercise; no fault and no runner."""
