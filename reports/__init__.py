"""Turns what a run left behind into verdicts and pages. Never talks to a cluster."""
