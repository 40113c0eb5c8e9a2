"""Measurements: how fast the suite is, and share groups beside what came before; no check."""
