"""Judges histories: Spark over the tables of a run, one small SQL file for each invariant."""
