-- Each share-partition with what the run as a whole says about it: whether it reached the end of its
-- log in the quiet at the end (the start offset that is shown is one write behind, the lag is not), how
-- often we were blind to what was acquired, how far the log's start may have moved, and between which
-- values its delivery limit was changed.
SELECT
  q.*,
  coalesce(b.blinds, 0) AS blinds,
  coalesce(r.reloads, 0) AS reloads,
  greatest(coalesce(o.log_start, 0), coalesce(x.before, 0)) AS log_start,
  least(q.delivery_limit, coalesce(l.lowest, q.delivery_limit)) AS lowest_limit,
  greatest(q.delivery_limit, coalesce(l.highest, q.delivery_limit)) AS highest_limit,
  coalesce(o.dry, false) AS dry,
  coalesce(f.failing, 0) AS failing,
  c.close_uncounted,
  c.throttling
FROM {queues} AS q
LEFT JOIN (SELECT queue, count(*) AS blinds FROM {blinds} GROUP BY queue) AS b ON b.queue = q.queue
LEFT JOIN (SELECT queue, count(*) AS reloads FROM {reloads} GROUP BY queue) AS r
  ON r.queue = q.queue
LEFT JOIN (
  SELECT
    queue,
    max(log_start) AS log_start,
    max(phase = 'quiet' AND (spso >= log_end OR lag = 0)) AS dry
  FROM {offsets}
  GROUP BY queue
) AS o ON o.queue = q.queue
LEFT JOIN (
  SELECT queue, min(delivery_limit) AS lowest, max(delivery_limit) AS highest
  FROM {limits}
  GROUP BY queue
) AS l ON l.queue = q.queue
LEFT JOIN (SELECT log, max(before) AS before FROM {deletions} GROUP BY log) AS x ON x.log = q.log
CROSS JOIN (SELECT count(*) AS failing FROM {faults}) AS f
CROSS JOIN {release} AS c
