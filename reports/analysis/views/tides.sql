-- For each share-partition and each tenth of a second: the highest offset acquired by then, the start
-- offset shown in it, and the lowest offset whose holder proved, later than that, that it was not yet
-- finished. Where loads or deletions free records there are none. What lies between lowest and highest was in flight at that moment.
SELECT
  queue,
  log,
  tick,
  shown,
  max(acquired_to) OVER (PARTITION BY queue ORDER BY tick) AS high,
  min(proved) OVER (
    PARTITION BY queue ORDER BY tick ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
  ) AS low,
  window,
  batch
FROM (
  SELECT
    t.queue,
    any_value(s.log) AS log,
    t.tick,
    max(t.acquired_to) AS acquired_to,
    min(t.proved) AS proved,
    max(t.shown) AS shown,
    any_value(s.window) AS window,
    any_value(s.batch) AS batch
  FROM (
    SELECT
      queue,
      CASE WHEN side = 0 THEN acquired_tick ELSE proved_tick END AS tick,
      CASE WHEN side = 0 THEN acquired_to END AS acquired_to,
      CASE WHEN side = 1 THEN proved END AS proved,
      CAST(NULL AS BIGINT) AS shown
    FROM (
      -- Both sides of a delivery from one pass over them.
      SELECT *, explode(sequence(0, 1)) AS side
      FROM (
        SELECT queue, acquired_tick, proved_tick, max(offset) AS acquired_to, min(offset) AS proved
        FROM (
          SELECT
            queue,
            offset,
            acquired DIV 100000000 AS acquired_tick,
            CASE
              WHEN
                kind IN (1, 3)
                AND outcome = 1
                AND settle_answered <= least(holds_until, freed)
                AND reign = reign_settled
              THEN settle_sent DIV 100000000
            END AS proved_tick
          FROM {deliveries}
        )
        GROUP BY queue, acquired_tick, proved_tick
      )
    )
    WHERE side = 0 OR proved_tick IS NOT NULL
    UNION ALL
    SELECT queue, answered DIV 100000000, NULL, NULL, max(spso)
    FROM {offsets}
    GROUP BY queue, answered DIV 100000000
  ) AS t
  JOIN {shares} AS s ON s.queue = t.queue
  WHERE s.reloads = 0 AND s.log_start <= s.first
  GROUP BY t.queue, t.tick
)
