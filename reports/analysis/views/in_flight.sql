-- For each share-partition, each state of it in a broker's memory, and each tenth of a second: the highest
-- offset acquired by then, the start offset shown in it, and the lowest offset whose holder proved, later
-- than that, that it was not yet finished and still in the log, "first_low" by its first delivery. What lies between
-- lowest and highest was in flight at that moment. A state is one broker's from one load to the next, and
-- what was shown belongs to one if deliveries before and after it do. "highest" is that of all states,
-- where there is only one, of logs that begin where they began.
SELECT
  run,
  share_partition,
  log,
  tick,
  shown,
  max(acquired_to) OVER (PARTITION BY share_partition, state ORDER BY tick) AS high,
  min(proved) OVER (
    PARTITION BY share_partition, state ORDER BY tick RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
  ) AS low,
  min(first_proved) OVER (
    PARTITION BY share_partition, state ORDER BY tick RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
  ) AS first_low,
  shown IS NOT NULL AS is_sample,
  CASE WHEN reloads = 0 AND whole THEN max(acquired_to) OVER (PARTITION BY share_partition ORDER BY tick) END AS highest,
  window,
  batch
FROM (
  SELECT
    *,
    CASE
      WHEN own IS NOT NULL THEN own
      WHEN
        (max(CASE WHEN own IS NOT NULL THEN struct(tick, own) END) OVER earlier).own
        = (min(CASE WHEN own IS NOT NULL THEN struct(tick, own) END) OVER later).own
        THEN (min(CASE WHEN own IS NOT NULL THEN struct(tick, own) END) OVER later).own
      ELSE -1L
    END AS state
  FROM (
    SELECT /*+ BROADCAST(s) */
      t.share_partition,
      any_value(s.run) AS run,
      any_value(s.log) AS log,
      t.tick,
      CASE WHEN s.reloads = 0 THEN 0L ELSE t.own END AS own,
      max(t.acquired_to) AS acquired_to,
      min(t.proved) AS proved,
      min(t.first_proved) AS first_proved,
      max(t.shown) AS shown,
      any_value(s.reloads) AS reloads,
      any_value(s.log_start <= s.first) AS whole,
      any_value(s.window) AS window,
      any_value(s.batch) AS batch
    FROM (
      SELECT
        share_partition,
        own,
        CASE WHEN side = 0 THEN acquired_tick ELSE proved_tick END AS tick,
        CASE WHEN side = 0 THEN acquired_to END AS acquired_to,
        CASE WHEN side = 1 THEN proved END AS proved,
        CASE WHEN side = 1 THEN first_proved END AS first_proved,
        CAST(NULL AS BIGINT) AS shown
      FROM (
        -- Both sides of a delivery from one pass over them.
        SELECT *, explode(sequence(0, 1)) AS side
        FROM (
          SELECT share_partition, own, acquired_tick, proved_tick, max(offset) AS acquired_to, min(offset) AS proved,
            min(first) AS first_proved
          FROM (
            SELECT
              share_partition,
              offset,
              CASE WHEN highest_before IS NULL THEN offset END AS first,
              (node + 1) * 1000000L + loads_before_fetch AS own,
              acquired DIV 100000000 AS acquired_tick,
              CASE WHEN kind IN (1, 3) AND proven AND NOT overtaken THEN ack_sent DIV 100000000 END AS proved_tick
            FROM {deliveries}
          )
          GROUP BY share_partition, own, acquired_tick, proved_tick
        )
      )
      WHERE side = 0 OR proved_tick IS NOT NULL
      UNION ALL
      SELECT share_partition, CAST(NULL AS BIGINT), received DIV 100000000, NULL, NULL, NULL, max(spso)
      FROM {offsets}
      GROUP BY share_partition, received DIV 100000000
    ) AS t
    JOIN {partitions} AS s ON s.share_partition = t.share_partition
    GROUP BY t.share_partition, t.tick, CASE WHEN s.reloads = 0 THEN 0L ELSE t.own END
  )
  WINDOW
    earlier AS (PARTITION BY share_partition ORDER BY tick RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
    later AS (PARTITION BY share_partition ORDER BY tick RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
)
