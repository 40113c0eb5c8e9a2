-- Every record that was stored as acknowledged (2), and every one that was stored as archived (3 or 4; one
-- that was stored as both is here twice), and whether a member of
-- its group may have finished it ("own"): accepted it, or rejected or exhausted it, whatever the response. Records that may be gone from the log are left out, they are
-- archived by themselves, and so are those of aborted transactions.
-- "acknowledged", "archiving", "archived", "accepted", "refused" and "exhausted" have a bit for each group of
-- the log, so that records and deliveries are read once for all groups, in the order in which they lie.
SELECT
  run,
  share_partition,
  log,
  offset,
  state,
  since,
  until,
  CASE
    WHEN state = 2 THEN accepted & bit <> 0
    ELSE (refused | exhausted) & bit <> 0 OR unseen_responses >= lowest_limit
  END AS own
FROM (
  SELECT /*+ BROADCAST(s) */
    p.run,
    s.share_partition,
    p.log,
    p.offset,
    coalesce(d.since, 0L) AS since,
    coalesce(d.until, 0L) AS until,
    coalesce(d.accepted, 0L) AS accepted,
    coalesce(d.refused, 0L) AS refused,
    coalesce(d.exhausted, 0L) AS exhausted,
    shiftleft(1L, s.slot) AS bit,
    s.unseen_responses,
    s.lowest_limit,
    explode(filter(
      array(
        CASE WHEN k.acknowledged & shiftleft(1L, s.slot) <> 0 THEN 2 END,
        CASE
          WHEN k.archiving & shiftleft(1L, s.slot) <> 0 THEN 3
          WHEN k.archived & shiftleft(1L, s.slot) <> 0 THEN 4
        END
      ),
      stored -> stored IS NOT NULL
    )) AS state
  FROM (SELECT * FROM {produced} WHERE transaction IN (0, 1)) AS p
  JOIN (
    SELECT
      s.run,
      s.log,
      e.offset,
      bit_or(CASE WHEN e.state = 2 THEN shiftleft(1L, s.slot) ELSE 0L END) AS acknowledged,
      bit_or(CASE WHEN e.state = 3 THEN shiftleft(1L, s.slot) ELSE 0L END) AS archiving,
      bit_or(CASE WHEN e.state = 4 THEN shiftleft(1L, s.slot) ELSE 0L END) AS archived
    FROM (
      SELECT share_partition, state, explode(sequence(first, last)) AS offset
      FROM {persisted}
      WHERE state IN (2, 3, 4) AND first >= 0 AND last >= first
    ) AS e
    JOIN {partitions} AS s ON s.share_partition = e.share_partition
    WHERE e.offset >= s.log_start
    GROUP BY s.run, s.log, e.offset
  ) AS k ON k.run = p.run AND k.log = p.log AND k.offset = p.offset
  LEFT JOIN (
    SELECT
      any_value(run) AS run,
      log,
      offset,
      min(acquired) AS since,
      max(acquired) AS until,
      bit_or(CASE WHEN kind = 1 OR attempts > 1 THEN bit ELSE 0L END) AS accepted,
      bit_or(CASE WHEN kind = 3 OR attempts > 1 OR count >= lowest_limit THEN bit ELSE 0L END) AS refused,
      bit_or(CASE WHEN count + unseen_responses >= lowest_limit THEN bit ELSE 0L END) AS exhausted
    FROM (
      SELECT *, shiftleft(1L, slot) AS bit
      FROM {delivery_pairs}
      WHERE (run, log) IN (
        SELECT run, log FROM {partitions}
        WHERE share_partition IN (SELECT share_partition FROM {persisted})
      )
    )
    GROUP BY {by_run}log, offset
  ) AS d ON {same_run}d.log = p.log AND d.offset = p.offset
  JOIN {partitions} AS s ON s.run = p.run AND s.log = p.log
)
