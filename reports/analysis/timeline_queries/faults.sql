-- What was broken, and when.
SELECT run, kind, subject, since, until FROM faults ORDER BY run, since LIMIT 100000
