-- id: INV-35
-- level: MUST
-- source: KIP-1240 §Proposed Changes
-- about: limits
-- When a group's delivery limit was changed, a record that was delivered since is only delivered again
-- if it is still within the new limit.
SELECT
  h.queue,
  h.log,
  h.offset,
  h.acquired AS since,
  h.next_acquired AS until,
  concat('count ', h.next_count, ', the limit has been ', l.delivery_limit,
    ' since before the last delivery') AS detail,
  h.next_count > l.delivery_limit AS broken
FROM (
  SELECT * FROM handovers
  WHERE next_op IS NOT NULL AND same_reign AND order_known AND queue IN (SELECT queue FROM limits)
) AS h
JOIN limits AS l ON l.queue = h.queue AND h.sent >= l.until AND h.next_acquired < l.ends
WHERE true
