-- id: INV-17
-- level: MUST
-- source: KIP-932 §In-flight records
-- The offsets in flight never exceed the group's limit by more than the rest of one batch.
SELECT
  queue,
  log,
  high AS offset,
  tick * 100000000 AS since,
  (tick + 1) * 100000000 AS until,
  concat(high - low + 1, ' offsets from ', low, ' on are in flight, the limit is ', window) AS detail,
  high - low + 1 > window + batch AS broken
FROM tides
WHERE high >= low
