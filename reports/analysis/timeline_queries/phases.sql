-- What the run was at, and when.
SELECT run, phase, since, until FROM phases ORDER BY run, since LIMIT 100000
