-- id: INV-37
-- level: MUST
-- source: KIP-932 §Managing durable share-partition state
-- needs: whole
-- about: persisted
-- Nothing is stored as acknowledged that nobody accepted, nor as archived that nobody rejected or
-- exhausted.
SELECT
  queue,
  log,
  offset,
  since,
  until,
  concat('stored in state ', state, ', and nobody finished it') AS detail,
  NOT own AND NOT others AS broken
FROM finishes
WHERE true
