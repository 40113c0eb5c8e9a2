"""Measurements: how fast the suite is, and share groups compared with earlier patterns; no check."""
