-- id: INV-09
-- level: MUST
-- source: KIP-932 §In-flight records
-- An acceptance or rejection that failed or was never answered does nothing else: its record is not
-- given out again before the lock of its holder ended.
SELECT
  queue,
  log,
  offset,
  settle_sent AS since,
  next_acquired AS until,
  concat('settled with error ', error, ' and given out again ',
    (least(holds_until, freed) - next_acquired) DIV 1000000,
    ' ms before its lock can have ended') AS detail,
  next_acquired < least(holds_until, freed) AS broken
FROM handovers
WHERE
  kind IN (1, 3)
  AND outcome IN (2, 3)
  AND attempts = 1
  AND same_reign
  AND order_known
  AND next_acquired > settle_sent
