"""Verdicts, results and pages from what a run left behind; nothing here talks to a cluster."""
