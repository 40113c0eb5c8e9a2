-- id: INV-26
-- level: MUST
-- source: KIP-932 §Fetching and acknowledging records
-- When a session ends, what it held can be acquired by others well before the locks would have ended.
-- Letting go is stored first, so that a run which had faults tells nothing about how long it takes.
SELECT
  queue,
  log,
  offset,
  freed AS since,
  next_acquired AS until,
  concat('freed by the end of its session, but only given out ',
    (next_acquired - freed) DIV 1000000, ' ms later, after its lock') AS detail,
  next_acquired >= holds_until AND next_sent < holds_until AS broken
FROM handovers
WHERE
  kind = 5
  AND next_op IS NOT NULL
  AND freed < holds_until - 4000000000L
  AND same_reign
  AND failing = 0
