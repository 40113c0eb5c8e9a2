-- The last that was shown of each share-partition, in runs that were allowed to end in peace.
SELECT run, share_partition, log, spso, lag, log_start, log_end, sent, received
FROM (
  SELECT o.*, s.log, row_number() OVER (PARTITION BY o.share_partition ORDER BY o.sent DESC) AS place
  FROM {offsets} AS o
  JOIN {partitions} AS s ON s.share_partition = o.share_partition
  WHERE o.phase IN ('drain', 'quiet')
)
WHERE place = 1
