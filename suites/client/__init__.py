"""The checks of client libraries: one file per topic, the wire as witness."""
