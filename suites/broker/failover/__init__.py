"""Checks that break brokers, on a cluster of their own that is mended after each."""
