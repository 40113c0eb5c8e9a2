"""Checks of a broker on the raw wire, and their helpers."""
