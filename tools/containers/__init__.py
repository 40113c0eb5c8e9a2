"""Containers without a registry and without an engine that runs, for our own tests."""
