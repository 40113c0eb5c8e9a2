-- id: INV-39
-- level: SHOULD
-- source: KAFKA-17541
-- On its last permitted delivery a record comes alone: one that always fails costs no other the limit.
-- Releases without throttling do otherwise, and so may groups whose limit is two or changes.
SELECT
  queue,
  log,
  offset,
  sent AS since,
  acquired AS until,
  concat('delivered for the last time in one answer with ', fellows, ' others') AS detail,
  fellows > 0 AS broken
FROM handovers
WHERE throttling AND count >= highest_limit AND highest_limit > 2 AND lowest_limit = highest_limit
