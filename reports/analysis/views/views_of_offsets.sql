-- What was shown of each share-partition, with what had been shown before.
SELECT
  o.*,
  s.log,
  lag(o.spso) OVER seen AS before,
  lag(o.answered) OVER seen AS since,
  lag(o.leader_epoch) OVER seen AS epoch_before
FROM offsets AS o
JOIN shares AS s ON s.queue = o.queue
WINDOW seen AS (PARTITION BY o.queue ORDER BY o.sent)
