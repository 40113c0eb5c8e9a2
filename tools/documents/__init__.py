"""Generators of documentation pages; no page written by hand."""
