-- id: INV-01
-- level: MUST
-- source: KIP-932 §In-flight records
-- A record is not given to a second member while its holder has the lock. The holder proves that it
-- had: its acknowledgement was sent after the other had the record, and was answered OK inside the
-- lock.
SELECT
  queue,
  log,
  offset,
  acquired AS since,
  settle_answered AS until,
  concat('held with count ', count, ' and given out again with count ', next_count) AS detail,
  same_reign AND order_known AND next_acquired < settle_sent AS broken
FROM handovers
WHERE kind IN (1, 2, 3) AND proven
