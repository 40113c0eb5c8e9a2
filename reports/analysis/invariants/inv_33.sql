-- id: INV-33
-- level: MUST
-- source: KIP-1191 §Proposed Changes
-- needs: whole
-- about: phases
-- Every rejected or exhausted record of a group with a dead-letter topic has a dead letter, and no
-- accepted one has. Copies of one letter say the same.
SELECT
  h.queue,
  h.log,
  h.offset,
  h.acquired AS since,
  h.settle_answered AS until,
  CASE
    WHEN h.kind = 1 THEN 'accepted, and with a dead letter'
    WHEN l.queue IS NULL AND h.kind = 3 THEN 'rejected, and without a dead letter'
    WHEN l.queue IS NULL THEN 'exhausted, and without a dead letter'
    ELSE concat(l.kinds, ' different dead letters')
  END AS detail,
  CASE WHEN h.kind = 1 THEN l.queue IS NOT NULL ELSE l.queue IS NULL OR l.kinds > 1 END AS broken
FROM (
  SELECT * FROM handovers
  WHERE
    present
    AND offset >= log_start
    AND (
      (kind IN (1, 3) AND proven)
      OR (
        -- Had for the last time, and let go or let run out.
        next_op IS NULL
        AND dry
        AND count >= highest_limit
        AND ((kind = 2 AND proven) OR (kind IN (0, 5) AND attempts = 0))
      )
    )
    AND queue IN (SELECT queue FROM queues WHERE dead_letters)
    AND EXISTS (SELECT 1 FROM phases WHERE phase = 'letters read')
) AS h
LEFT JOIN (
  SELECT queue, offset, count(DISTINCT count, crc) AS kinds
  FROM dead_letters
  GROUP BY queue, offset
) AS l ON l.queue = h.queue AND l.offset = h.offset
WHERE true
