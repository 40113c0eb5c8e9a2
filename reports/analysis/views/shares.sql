-- Each share-partition with what the run as a whole says about it: whether it reached the end of its
-- log in the quiet at the end (the start offset that is shown is one write behind, the lag is not), how
-- often we were blind to what was acquired, and how far the log's
-- start had moved.
SELECT
  q.*,
  coalesce(b.blinds, 0) AS blinds,
  coalesce(r.reloads, 0) AS reloads,
  coalesce(o.log_start, 0) AS log_start,
  coalesce(o.dry, false) AS dry,
  coalesce(f.failing, 0) AS failing
FROM queues AS q
LEFT JOIN (SELECT queue, count(*) AS blinds FROM blinds GROUP BY queue) AS b ON b.queue = q.queue
LEFT JOIN (SELECT queue, count(*) AS reloads FROM reloads GROUP BY queue) AS r
  ON r.queue = q.queue
LEFT JOIN (
  SELECT
    queue,
    max(log_start) AS log_start,
    max(phase = 'quiet' AND (spso >= log_end OR lag = 0)) AS dry
  FROM offsets
  GROUP BY queue
) AS o ON o.queue = q.queue
CROSS JOIN (SELECT count(*) AS failing FROM faults) AS f
