-- For each share-partition and each tenth of a second: the highest offset acquired by then, the start
-- offset shown in it, and the lowest offset whose holder proved, later than that, that it was not yet
-- finished. Where loads or deletions free records there are none. What lies between lowest and highest was in flight at that moment.
SELECT
  run,
  share_partition,
  log,
  tick,
  shown,
  max(acquired_to) OVER (PARTITION BY share_partition ORDER BY tick) AS high,
  min(proved) OVER (
    PARTITION BY share_partition ORDER BY tick ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
  ) AS low,
  window,
  batch
FROM (
  SELECT /*+ BROADCAST(s) */
    t.share_partition,
    any_value(s.run) AS run,
    any_value(s.log) AS log,
    t.tick,
    max(t.acquired_to) AS acquired_to,
    min(t.proved) AS proved,
    max(t.shown) AS shown,
    any_value(s.window) AS window,
    any_value(s.batch) AS batch
  FROM (
    SELECT
      share_partition,
      CASE WHEN side = 0 THEN acquired_tick ELSE proved_tick END AS tick,
      CASE WHEN side = 0 THEN acquired_to END AS acquired_to,
      CASE WHEN side = 1 THEN proved END AS proved,
      CAST(NULL AS BIGINT) AS shown
    FROM (
      -- Both sides of a delivery from one pass over them.
      SELECT *, explode(sequence(0, 1)) AS side
      FROM (
        SELECT share_partition, acquired_tick, proved_tick, max(offset) AS acquired_to, min(offset) AS proved
        FROM (
          SELECT
            share_partition,
            offset,
            acquired DIV 100000000 AS acquired_tick,
            CASE
              WHEN
                kind IN (1, 3)
                AND outcome = 1
                AND ack_received <= least(holds_until, freed)
                AND loads_before_fetch = loads_by_ack
              THEN ack_sent DIV 100000000
            END AS proved_tick
          FROM {deliveries}
        )
        GROUP BY share_partition, acquired_tick, proved_tick
      )
    )
    WHERE side = 0 OR proved_tick IS NOT NULL
    UNION ALL
    SELECT share_partition, received DIV 100000000, NULL, NULL, max(spso)
    FROM {offsets}
    GROUP BY share_partition, received DIV 100000000
  ) AS t
  JOIN {partitions} AS s ON s.share_partition = t.share_partition
  WHERE s.reloads = 0 AND s.log_start <= s.first
  GROUP BY t.share_partition, t.tick
)
