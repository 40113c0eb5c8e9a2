-- id: INV-11
-- level: MUST
-- source: KIP-932 §Ordering
-- Within an answer the acquired offsets of a partition rise, and none appears twice.
SELECT
  queue,
  log,
  offset,
  sent AS since,
  acquired AS until,
  CASE WHEN next_op = op THEN 'listed twice in one answer'
    ELSE concat('listed after offset ', after, ' in one answer') END AS detail,
  coalesce(next_op = op, false) OR after >= offset AS broken
FROM handovers
WHERE true
