-- id: INV-41
-- level: MUST
-- source: KIP-932 §Managing durable share-partition state
-- needs: whole
-- about: phases
-- What was accepted or rejected with an answer of OK is stored: when the whole state topic is read later,
-- some record of it says that it is finished, or has a start offset beyond it.
SELECT
  h.queue,
  h.log,
  h.offset,
  h.settle_sent AS since,
  h.settle_answered AS until,
  concat('finished with an answer of OK at count ', h.count, ', and no stored state says so') AS detail,
  h.offset >= coalesce(s.spso, -1) AND f.offset IS NULL AS broken
FROM (
  SELECT * FROM handovers
  WHERE kind IN (1, 3) AND proven
) AS h
JOIN (SELECT max(since) AS since FROM phases WHERE phase = 'state read') AS r
  ON h.settle_answered <= r.since
LEFT JOIN (SELECT queue, max(spso) AS spso FROM persisted GROUP BY queue) AS s ON s.queue = h.queue
LEFT JOIN (
  SELECT DISTINCT queue, offset
  FROM (
    -- Few are beyond the last start offset.
    SELECT p.queue, explode(sequence(greatest(p.first, t.spso), p.last)) AS offset
    FROM persisted AS p
    JOIN (SELECT queue, max(spso) AS spso FROM persisted GROUP BY queue) AS t ON t.queue = p.queue
    WHERE p.state IN (2, 3, 4) AND p.first >= 0 AND p.last >= greatest(p.first, t.spso)
  )
) AS f ON f.queue = h.queue AND f.offset = h.offset
WHERE true
