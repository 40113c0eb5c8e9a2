-- id: INV-20
-- level: MUST
-- source: KIP-932 §Managing the SPSO and SPEO
-- The start offset never passes a record that is not finished: none below it is acknowledged with
-- proof of its lock after it was shown.
SELECT
  queue,
  log,
  low AS offset,
  tick * 100000000 AS since,
  (tick + 1) * 100000000 AS until,
  concat('start offset ', shown, ' was shown while ', low, ' was held') AS detail,
  low < shown AS broken
FROM tides
WHERE shown > 0 AND low IS NOT NULL
