"""Random sequences of calls: drawn, played against a client, judged, and shrunk."""
