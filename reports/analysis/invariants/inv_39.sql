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
  concat('delivered for the last time in one answer with ', records - 1, ' others') AS detail,
  records > 1 AS broken
FROM (
  SELECT
    d.queue,
    any_value(d.log) AS log,
    min(CASE WHEN d.count >= l.highest_limit THEN d.offset END) AS offset,
    min(d.sent) AS sent,
    max(d.acquired) AS acquired,
    count(*) AS records
  FROM deliveries AS d
  JOIN (
    SELECT DISTINCT d.queue, d.op, s.highest_limit
    FROM deliveries AS d
    JOIN shares AS s ON s.queue = d.queue
    WHERE
      d.count >= s.highest_limit
      AND s.highest_limit > 2
      AND s.lowest_limit = s.highest_limit
      AND s.throttling
  ) AS l ON l.queue = d.queue AND l.op = d.op
  GROUP BY d.queue, d.op
)
WHERE true
