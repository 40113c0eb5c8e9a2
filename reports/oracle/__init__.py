"""The oracle: the verdicts of ``reports.analysis`` again, by plain loops and without Spark.

It shares no line with the queries, needs no Spark and no cleverness, and is far too slow for a long
run. It is what the queries are compared with: on the cases of every rule, on histories that the
model makes, and on such with one lie in them.
"""
