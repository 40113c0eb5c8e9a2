-- What each group's members did to each record of the logs of which some state was read: whether any may
-- have accepted it, and whether any may have rejected it or had it for the last time.
SELECT
  run,
  share_partition,
  log,
  offset,
  min(acquired) AS since,
  max(acquired) AS until,
  max(count) AS count,
  max(kind = 1 OR attempts > 1) AS accepted,
  max(kind = 3 OR attempts > 1 OR count >= lowest_limit) AS refused
FROM {delivery_pairs}
WHERE (run, log) IN (
  SELECT run, log FROM {partitions} WHERE share_partition IN (SELECT share_partition FROM {persisted})
)
GROUP BY run, share_partition, log, offset
