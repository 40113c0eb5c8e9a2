-- id: INV-13
-- level: MUST
-- source: KIP-932 §Managing durable share-partition state
-- After a load of the share-partition a count may have fallen back to what was stored, but it is never
-- more than one above the last. A count that seems to be skipped may have been seen before, where the
-- answer to the earlier delivery was the one that was read late.
SELECT
  queue,
  log,
  offset,
  acquired AS since,
  next_acquired AS until,
  concat('count ', count, ' before the load, ', next_count, ' after it') AS detail,
  seen
    AND next_sent > acquired
    AND next_count > count + 1
    AND lowest_after >= next_count
    AND NOT coalesce(highest_before >= next_count - 1, false) AS broken
FROM handovers
WHERE next_op IS NOT NULL AND NOT same_reign
