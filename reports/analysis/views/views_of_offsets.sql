-- What was shown of each share-partition, with what had been shown before and the log's end
-- as it was certainly sampled later.
SELECT
  o.*,
  s.log,
  s.blinds,
  s.committed_only,
  lag(o.spso) OVER seen AS before,
  lag(o.answered) OVER seen AS since,
  lag(o.leader_epoch) OVER seen AS epoch_before,
  lead(o.log_end) OVER seen AS end_after
FROM {offsets} AS o
JOIN {shares} AS s ON s.queue = o.queue
WINDOW seen AS (PARTITION BY o.queue ORDER BY o.sent)
