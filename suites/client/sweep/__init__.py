"""The sweep: every error code of every API that a client calls, at every level, in every rhythm."""
