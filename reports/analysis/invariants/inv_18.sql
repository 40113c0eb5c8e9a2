-- id: INV-18
-- level: MUST
-- source: KIP-932 §In-flight records
-- A lock lasts: a record is not given out again before its lock ended, unless its holder let it go,
-- its session ended or the share-partition was loaded anew.
SELECT
  queue,
  log,
  offset,
  acquired AS since,
  next_acquired AS until,
  concat('given out again ', (least(holds_until, freed) - next_acquired) DIV 1000000,
    ' ms before its lock of ', lock_ms, ' ms can have ended') AS detail,
  same_reign
    AND order_known
    AND NOT proven
    AND next_op <> op
    AND next_acquired < least(holds_until, freed)
    AND next_acquired < settle_sent
    AND attempts <= 1 AS broken
FROM handovers
WHERE next_op IS NOT NULL
