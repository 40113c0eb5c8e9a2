"""Measurements: how fast the suite is; no check."""
