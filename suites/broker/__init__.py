"""Checks of a broker, from the raw wire."""
