"""Chaos: scenarios to play, and the judgement of what was played."""
