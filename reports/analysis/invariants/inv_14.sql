-- id: INV-14
-- level: MUST
-- source: KIP-932 §In-flight records
-- No record is delivered more often than the group's limit allows, the highest of those it had.
SELECT
  queue,
  log,
  offset,
  sent AS since,
  acquired AS until,
  concat('count ', count, ', the limit is ', highest_limit) AS detail,
  count > highest_limit AS broken
FROM handovers
WHERE true
