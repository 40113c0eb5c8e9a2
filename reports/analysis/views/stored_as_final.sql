-- Every record that was stored as acknowledged (2), and every one that was stored as archived (3 or 4; one
-- that was stored as both is here twice), and whether a member of
-- its group ("own") or of another ("others") may have finished it: accepted it, or rejected or
-- exhausted it, whatever the response. Records that may be gone from the log are left out, they are
-- archived by themselves, and so are those of aborted transactions.
SELECT
  s.run,
  k.share_partition,
  s.log,
  k.offset,
  k.state,
  coalesce(d.since, 0L) AS since,
  coalesce(d.until, 0L) AS until,
  CASE
    WHEN k.state = 2 THEN coalesce(d.accepted, false)
    ELSE coalesce(d.refused, false) OR coalesce(d.count, 0) + s.unseen_responses >= s.lowest_limit
  END AS own,
  coalesce(CASE WHEN k.state = 2 THEN o.accepted ELSE o.refused END, 0)
    > CASE WHEN coalesce(CASE WHEN k.state = 2 THEN d.accepted ELSE d.refused END, false)
      THEN 1 ELSE 0 END AS others
FROM (
  SELECT share_partition, offset, min(state) AS state
  FROM (
    SELECT share_partition, state, explode(sequence(first, last)) AS offset
    FROM {persisted}
    WHERE state IN (2, 3, 4) AND first >= 0 AND last >= first
  )
  GROUP BY share_partition, offset, state = 2
) AS k
JOIN {partitions} AS s ON s.share_partition = k.share_partition
JOIN {produced} AS p
  ON p.run = s.run AND p.log = s.log AND p.offset = k.offset AND p.transaction IN (0, 1)
LEFT JOIN {acknowledgements} AS d ON d.share_partition = k.share_partition AND d.offset = k.offset
LEFT JOIN (
  SELECT
    run,
    log,
    offset,
    count_if(accepted) AS accepted,
    count_if(refused) AS refused
  FROM {acknowledgements}
  GROUP BY run, log, offset
) AS o ON o.run = s.run AND o.log = s.log AND o.offset = k.offset
WHERE k.offset >= s.log_start
