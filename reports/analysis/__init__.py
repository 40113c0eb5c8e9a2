"""Judges histories: Spark over the tables of a run, one declaration for each invariant."""
