-- Each delivery of a record with the one that followed it in the same group. The compaction has left
-- that in the row, so this is one pass without a shuffle, a sort or a window: what is sent around is the
-- share-partitions, however many rows Spark expects of all that they are joined from.
--
-- "no_load_between": both came from the same broker, and no load by it can have come between: one state in its
-- memory gave both. "order_known": the second is
-- the later one at the broker too, as its fetch was sent after the first was here, or as its count is higher. A response may be on its way for longer than its lock
-- lasts, so the order in which deliveries were seen may be wrong.
-- "next_proven_kind" is how the second holder's acknowledgement ended it, 0 where that is not proven.
-- "deposed": the second came from a leader that another one had deposed. Paused, or cut off, it serves what it
-- knows until it hears of its successor, and can store nothing, so that its word is none.
-- "free_by": when the record was certainly free for others again, if its holder did not finish it.
SELECT /*+ BROADCAST(s) */
  d.*,
  s.lowest_limit,
  s.highest_limit,
  s.log_start,
  s.drained,
  s.passed,
  s.unseen_responses,
  s.committed_only,
  s.slot,
  s.reloads,
  s.last_load_begun,
  s.last_load_over,
  s.close_uncounted,
  s.throttling,
  d.highest_before IS NULL AS is_first,
  d.next_op IS NOT NULL AND d.next_node = d.node AND d.next_loads_by_acquire = d.loads_before_fetch AS no_load_between,
  d.next_op IS NOT NULL AND (
    d.next_sent > d.acquired
    OR (d.next_node = d.node AND d.next_loads_by_acquire = d.loads_before_fetch AND d.next_count > d.count)
  ) AS order_known,
  coalesce(d.next_node <> d.node AND d.next_loaded < d.loaded, false) AS deposed,
  CASE
    WHEN d.kind = 2 AND d.outcome = 1 THEN d.ack_received
    WHEN d.kind = 5 AND d.outcome = 1 THEN d.ack_sent
    ELSE d.ends_by
  END AS free_by
FROM {deliveries} AS d
JOIN {partitions} AS s ON s.share_partition = d.share_partition
