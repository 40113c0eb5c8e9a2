-- Each share-partition with what its run as a whole says about it: whether it reached the end of its
-- log in the quiet at the end (the start offset that is shown is one write behind, the lag is not), how
-- many fetches had responses that nobody saw, how far the log's start may have moved, and between which
-- values its delivery limit was changed. "passed" is the highest start offset that was ever shown. What was produced after "unseen_until" was delivered in fewer such
-- responses than the limit allows; it is -1 if there were fewer at all.
SELECT
  q.*,
  coalesce(b.unseen_responses, 0) AS unseen_responses,
  coalesce(e.until, -1L) AS unseen_until,
  coalesce(r.reloads, 0) AS reloads,
  coalesce(r.begun, -1L) AS last_load_begun,
  coalesce(r.over, -1L) AS last_load_over,
  greatest(coalesce(o.log_start, 0), coalesce(x.before, 0)) AS log_start,
  least(q.delivery_limit, coalesce(l.lowest, q.delivery_limit)) AS lowest_limit,
  greatest(q.delivery_limit, coalesce(l.highest, q.delivery_limit)) AS highest_limit,
  coalesce(o.drained, false) AS drained,
  coalesce(o.passed, 0) AS passed,
  c.close_uncounted,
  c.throttling
FROM {share_partitions} AS q
LEFT JOIN (SELECT share_partition, count(*) AS unseen_responses FROM {unseen_responses} GROUP BY share_partition) AS b ON b.share_partition = q.share_partition
LEFT JOIN (
  SELECT share_partition, count(*) AS reloads, max(since) AS begun, max(until) AS over FROM {reloads} GROUP BY share_partition
) AS r
  ON r.share_partition = q.share_partition
LEFT JOIN (
  SELECT
    share_partition,
    max(log_start) AS log_start,
    max(spso) AS passed,
    max(phase = 'quiet' AND (spso >= log_end OR lag = 0)) AS drained
  FROM {offsets}
  GROUP BY share_partition
) AS o ON o.share_partition = q.share_partition
LEFT JOIN (
  SELECT share_partition, min(delivery_limit) AS lowest, max(delivery_limit) AS highest
  FROM {limits}
  GROUP BY share_partition
) AS l ON l.share_partition = q.share_partition
LEFT JOIN (
  SELECT share_partition, until, row_number() OVER (PARTITION BY share_partition ORDER BY until DESC) AS place
  FROM {unseen_responses}
) AS e
  ON e.share_partition = q.share_partition
  AND e.place = least(q.delivery_limit, coalesce(l.lowest, q.delivery_limit))
LEFT JOIN (SELECT run, log, max(before) AS before FROM {deletions} GROUP BY run, log) AS x
  ON x.run = q.run AND x.log = q.log
JOIN {release} AS c ON c.run = q.run
