-- id: INV-23
-- level: MUST
-- source: KIP-932 §In-flight records
-- A record that was let go, or whose lock ended, is given to a waiting member within one lock duration
-- and fifteen seconds.
SELECT
  queue,
  log,
  offset,
  acquired AS since,
  next_acquired AS until,
  concat('came again ', (next_acquired - free_by) DIV 1000000, ' ms after it was free') AS detail,
  next_acquired - free_by > 1000000L * lock_ms + 15000000000L AS broken
FROM handovers
WHERE next_op IS NOT NULL AND (kind IN (0, 5) OR (kind = 2 AND outcome = 1))
