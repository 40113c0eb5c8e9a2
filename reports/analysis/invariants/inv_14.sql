-- id: INV-14
-- level: MUST
-- source: KIP-932 §In-flight records
-- No record is delivered more often than the group's limit allows.
SELECT
  queue,
  log,
  offset,
  sent AS since,
  acquired AS until,
  concat('count ', count, ', the limit is ', delivery_limit) AS detail,
  count > delivery_limit AS broken
FROM handovers
WHERE true
