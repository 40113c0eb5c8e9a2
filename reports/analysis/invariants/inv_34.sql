-- id: INV-34
-- level: MUST
-- source: KIP-932 §Reading transactional records
-- A group that reads committed records only is never given a record of an aborted transaction.
SELECT
  queue,
  log,
  offset,
  first_sent AS since,
  last_acquired AS until,
  concat('record ', sequence, ' of producer ', producer, ' was aborted and came') AS detail,
  seen_committed <> 0 AS broken
FROM ledger
WHERE was_produced AND transaction = 2
