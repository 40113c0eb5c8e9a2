-- Each delivery of a record with the one that followed it in the same group. The compaction has left
-- that in the row, so this is one pass without a shuffle, a sort or a window.
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
  s.throttling,
  d.highest_before IS NULL AS is_first,
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
FROM {deliveries} AS d
JOIN {shares} AS s ON s.queue = d.queue
