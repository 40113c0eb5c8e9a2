"""Recorded histories with one alteration each, and the verdicts that the judge must give for them.

A copy of a log with all that its groups made of it gets numbers of its own, so that many are judged
as one history. What breaks a rule must be told by that rule and by no other; what looks like it and
is legal must be told by none.

``recorded`` has such a history: ``python -m tests.altered.record DIR`` made it, of Kafka
4.4.0 on one broker. ``python -m tests.altered DIR`` alters any other run's.
"""
