-- id: INV-05
-- level: MUST
-- source: KIP-932 §In-flight records
-- needs: whole
-- Every record that was stored is in the end delivered to every group that reached the end of the
-- log, unless it was aborted or the log's start passed it.
SELECT
  queue,
  log,
  offset,
  produced_sent AS since,
  produced_answered AS until,
  concat('record ', sequence, ' of producer ', producer, ' never came to ',
    bit_count(owed & ~seen), ' of ', bit_count(owed), ' groups') AS detail,
  (owed & ~seen) <> 0 AS broken
FROM ledger
WHERE was_produced AND transaction IN (0, 1) AND owed <> 0
