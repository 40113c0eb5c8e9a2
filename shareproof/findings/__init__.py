"""Findings about brokers, played again: by their rules, by sweeps, and by programs of their own."""
