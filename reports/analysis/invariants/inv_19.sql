-- id: INV-19
-- level: MUST
-- source: KIP-932 §Managing the SPSO and SPEO
-- The start offset that a group shows never goes back.
SELECT
  queue,
  log,
  spso AS offset,
  since,
  answered AS until,
  concat('start offset ', before, ' was shown, then ', spso) AS detail,
  spso < before AS broken
FROM views_of_offsets
WHERE spso >= 0 AND before >= 0 AND sent >= since
