"""Runs the sweep of a client: spreads its cases over hostile brokers, judges, reports."""
