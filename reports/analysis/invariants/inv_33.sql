-- id: INV-33
-- level: MUST
-- source: KIP-1191 §Proposed Changes
-- needs: whole
-- Every rejected or exhausted record of a group with a dead-letter topic has a dead letter, and no
-- accepted one has.
SELECT
  h.queue,
  h.log,
  h.offset,
  h.settle_sent AS since,
  h.settle_answered AS until,
  CASE WHEN h.kind = 3 THEN 'rejected, and without a dead letter'
    ELSE 'accepted, and with a dead letter' END AS detail,
  CASE WHEN h.kind = 3 THEN l.queue IS NULL ELSE l.queue IS NOT NULL END AS broken
FROM (
  SELECT * FROM handovers
  WHERE kind IN (1, 3) AND proven AND queue IN (SELECT queue FROM queues WHERE dead_letters)
) AS h
LEFT JOIN (SELECT DISTINCT queue, offset FROM dead_letters) AS l
  ON l.queue = h.queue AND l.offset = h.offset
WHERE true
