-- What was shown of each share-partition, with what had been shown before and the log's end
-- as it was certainly sampled later.
SELECT
  o.*,
  s.log,
  s.unseen_responses,
  s.committed_only,
  lag(o.spso) OVER seen AS before,
  lag(o.received) OVER seen AS since,
  lag(o.leader_epoch) OVER seen AS epoch_before,
  lead(o.log_end) OVER seen AS end_after
FROM {offsets} AS o
JOIN {partitions} AS s ON s.share_partition = o.share_partition
WINDOW seen AS (PARTITION BY o.share_partition ORDER BY o.sent)
