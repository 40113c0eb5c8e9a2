"""Chaos runs and nights, from options to verdicts; no fault and no scenario."""
