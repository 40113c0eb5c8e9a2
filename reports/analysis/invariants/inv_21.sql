-- id: INV-21
-- level: MUST
-- source: KIP-932 §Managing durable share-partition state
-- about: persisted
-- What was accepted or rejected with an answer of OK is never stored as available with that count or a
-- higher one.
SELECT
  h.queue,
  h.log,
  h.offset,
  h.settle_sent AS since,
  h.settle_answered AS until,
  concat('finished at count ', h.count, ', stored as available with count ', a.count) AS detail,
  a.count IS NOT NULL AND a.count >= h.count AND h.offset >= a.spso AS broken
FROM (
  SELECT * FROM handovers
  WHERE kind IN (1, 3) AND proven AND queue IN (SELECT DISTINCT queue FROM persisted)
) AS h
LEFT JOIN (
  SELECT queue, offset, max(count) AS count, min(spso) AS spso
  FROM (
    SELECT queue, spso, count, explode(sequence(first, last)) AS offset
    FROM persisted
    WHERE state = 0 AND first >= 0 AND last >= first
  )
  GROUP BY queue, offset
) AS a ON a.queue = h.queue AND a.offset = h.offset
WHERE true
