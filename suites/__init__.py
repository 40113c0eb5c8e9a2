"""The checks themselves: one file per topic, one test per rule."""
