-- id: INV-12
-- level: MUST
-- source: KIP-932 §In-flight records
-- Between two loads of a share-partition the delivery count is one at the first delivery and rises by
-- exactly one with each further one. Where an answer got lost, more than one is possible. That a delivery
-- counts which ended with its session is INV-15; where a release takes such a count back, no end of a
-- session raises one. Answers overtake each other, so the first that was seen need not be the first there
-- was.
SELECT
  queue,
  log,
  offset,
  acquired AS since,
  coalesce(next_acquired, acquired) AS until,
  CASE
    WHEN is_first AND count <> 1 THEN concat('first delivered with count ', count)
    ELSE concat('delivered with count ', count, ' and then with count ', next_count)
  END AS detail,
  (
    is_first
    AND reign_acquired = 0
    AND blind_acquired = 0
    AND count <> 1
    AND NOT coalesce(lowest_after < count, false)
  )
    OR (
      coalesce(same_reign, false)
      AND next_sent > acquired
      AND next_op <> op
      AND (
        next_count < count
        OR (
          next_count = count
          AND NOT (kind = 5 AND freed < holds_until)
          AND NOT (close_uncounted AND freed <= ends_by)
        )
        OR (
          seen
          AND next_count > count + 1
          AND lowest_after >= next_count
          AND NOT coalesce(highest_before >= next_count - 1, false)
        )
      )
    ) AS broken
FROM handovers
WHERE is_first OR same_reign
