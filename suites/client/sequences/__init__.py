"""Sequences of calls that nobody thought of: drawn, played against a client, judged, shrunk."""
