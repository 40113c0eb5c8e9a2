-- The last that was shown of each share-partition, in runs that were allowed to end in peace, with when the
-- same was shown first after production had ended, and how often.
SELECT run, share_partition, log, spso, lag, log_start, log_end, sent, received, stands_since, times, lock_ms
FROM (
  SELECT o.*, s.log, row_number() OVER (PARTITION BY o.share_partition ORDER BY o.sent DESC) AS place,
    min(o.sent) OVER (PARTITION BY o.share_partition, o.spso, o.lag) AS stands_since,
    count(*) OVER (PARTITION BY o.share_partition, o.spso, o.lag) AS times, s.lock_ms
  FROM {offsets} AS o
  JOIN {partitions} AS s ON s.share_partition = o.share_partition
  WHERE o.phase IN ('drain', 'quiet')
)
WHERE place = 1
