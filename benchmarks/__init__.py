"""Measurements: how fast the suite is, and share groups beside earlier patterns; no check."""
