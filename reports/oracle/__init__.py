"""The oracle: the verdicts of ``reports.analysis`` again, by plain loops over a run's journals.

It shares no line and no intermediate result with the queries or with the compaction that feeds
them, only the schema. It needs no Spark, and is far too slow for a long run. The queries are
compared with it: on the cases of every rule, on histories that the model makes, and on such with
one fault in them.
"""
