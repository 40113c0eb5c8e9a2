-- id: INV-38
-- level: MUST
-- source: KIP-1226 §Proposed Changes
-- The lag that is shown is at most the number of offsets from the start offset that is shown with it to
-- the log's end, and at least that of the offsets that were not acquired by anybody yet.
SELECT
  o.queue,
  o.log,
  o.spso AS offset,
  o.sent AS since,
  o.answered AS until,
  concat('lag ', o.lag, ' with start offset ', o.spso, ', highest acquired ', t.high, ', log end from ',
    o.log_end, ' to ', o.end_after) AS detail,
  o.lag > o.end_after - o.spso
    OR (
      t.high IS NOT NULL
      AND o.blinds = 0
      AND NOT o.committed_only
      AND o.lag < o.log_end - greatest(t.high + 1, o.spso)
    ) AS broken
FROM views_of_offsets AS o
LEFT JOIN tides AS t ON t.queue = o.queue AND t.tick = o.answered DIV 100000000
WHERE o.lag >= 0 AND o.spso >= 0 AND o.end_after IS NOT NULL
