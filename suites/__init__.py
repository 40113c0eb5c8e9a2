"""The checks, one file per topic and one test per rule, and the helpers they share; no runner."""
