"""Checks of client libraries: a tap on the wire is the witness, not what the library reports."""
