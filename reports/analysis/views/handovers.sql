-- Each delivery of a record with the one that followed it in the same group. The history is laid out
-- by record, so this is one pass without a shuffle and without a sort.
--
-- "proven": the holder's acknowledgement was answered OK certainly inside its lock, with no load of
-- the share-partition possible in between. Brokers answer OK to anything below the start offset, so
-- no other OK says anything, and none does about a record that the log's start may have passed.
-- "same_reign" and "seen": no load, and no fetch with an unseen answer, can have come between the two
-- deliveries. "order_known": the second is the later one at the broker too, as its fetch was sent after
-- the first was here, or as its count is higher. An answer may be on its way for longer than its lock
-- lasts, so the order in which deliveries were seen may be wrong.
-- "free_by": when the record was certainly free for others again, if its holder did not finish it.
SELECT
  d.*,
  s.lowest_limit,
  s.highest_limit,
  s.log_start,
  s.dry,
  s.blinds,
  s.committed_only,
  s.slot,
  s.reloads,
  s.failing,
  s.close_uncounted,
  d.outcome = 1
    AND d.settle_answered <= least(d.holds_until, d.freed)
    AND d.reign = d.reign_settled
    AND d.offset >= s.log_start AS proven,
  d.next_op IS NOT NULL AND d.next_reign_acquired = d.reign AS same_reign,
  d.next_op IS NOT NULL AND d.next_blind_acquired = d.blind AS seen,
  d.next_op IS NOT NULL AND (
    d.next_sent > d.acquired OR (d.next_reign_acquired = d.reign AND d.next_count > d.count)
  ) AS order_known,
  CASE
    WHEN d.kind = 2 AND d.outcome = 1 THEN d.settle_answered
    WHEN d.kind = 5 AND d.outcome = 1 THEN d.settle_sent
    ELSE d.ends_by
  END AS free_by
FROM (
  SELECT
    *,
    lag(op) OVER record IS NULL AS is_first,
    lag(count) OVER record AS previous_count,
    lead(op) OVER record AS next_op,
    lead(sent) OVER record AS next_sent,
    lead(acquired) OVER record AS next_acquired,
    lead(count) OVER record AS next_count,
    min(count) OVER rest AS lowest_to_come,
    lead(reign_acquired) OVER record AS next_reign_acquired,
    lead(blind_acquired) OVER record AS next_blind_acquired
  FROM deliveries
  WINDOW
    record AS (PARTITION BY log, offset, queue ORDER BY acquired),
    rest AS (
      PARTITION BY log, offset, queue ORDER BY acquired
      ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    )
) AS d
JOIN shares AS s ON s.queue = d.queue
