-- id: INV-02
-- level: MUST
-- source: KIP-932 §In-flight records
-- A record that its holder accepted inside the lock, with an answer of OK, is never given to that
-- group again.
SELECT
  queue,
  log,
  offset,
  settle_sent AS since,
  next_acquired AS until,
  concat('accepted at count ', count, ', delivered again with count ', next_count) AS detail,
  next_acquired > settle_sent
    AND (next_sent >= settle_answered OR (same_reign AND next_count > count)) AS broken
FROM handovers
WHERE kind = 1 AND proven
