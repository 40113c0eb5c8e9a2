-- id: INV-21
-- level: MUST
-- source: KIP-932 §Managing durable share-partition state
-- about: persisted
-- What was accepted or rejected with an answer of OK is never stored as available with that count or a
-- higher one, later than as finished. Earlier it may have been: counts fall back when a share-partition
-- is loaded.
SELECT
  h.queue,
  h.log,
  h.offset,
  h.settle_sent AS since,
  h.settle_answered AS until,
  concat('finished at count ', h.count, ', stored as available with count ', a.count) AS detail,
  coalesce(
    a.available_at > coalesce(a.finished_at, -1) AND a.count >= h.count AND h.offset >= a.spso,
    false
  ) AS broken
FROM (
  SELECT * FROM handovers
  WHERE kind IN (1, 3) AND proven AND queue IN (SELECT DISTINCT queue FROM persisted)
) AS h
LEFT JOIN (
  SELECT
    queue,
    offset,
    max(count) FILTER (WHERE state = 0) AS count,
    min(spso) FILTER (WHERE state = 0) AS spso,
    max(position) FILTER (WHERE state = 0) AS available_at,
    max(position) FILTER (WHERE state <> 0) AS finished_at
  FROM (
    SELECT queue, spso, count, state, position, explode(sequence(first, last)) AS offset
    FROM persisted
    WHERE first >= 0 AND last >= first
  )
  GROUP BY queue, offset
) AS a ON a.queue = h.queue AND a.offset = h.offset
WHERE true
