-- The last that was shown of each share-partition, in runs that were allowed to end in peace.
SELECT queue, log, spso, lag, log_start, log_end, sent, answered
FROM (
  SELECT o.*, s.log, row_number() OVER (PARTITION BY o.queue ORDER BY o.sent DESC) AS place
  FROM {offsets} AS o
  JOIN {shares} AS s ON s.queue = o.queue
  WHERE o.phase IN ('drain', 'quiet')
)
WHERE place = 1
