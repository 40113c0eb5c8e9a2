-- id: INV-08
-- level: MUST
-- source: KIP-932 §Client programming interface
-- needs: whole
-- An acceptance or rejection of several records of a partition that failed or was never answered took
-- effect for all of them or for none: where some come again, the others do too. Records that may have
-- ended in another way tell nothing.
SELECT
  queue,
  log,
  offset,
  since,
  until,
  concat(gone, ' of ', gone + again, ' records of one acknowledgement without success never came again')
    AS detail,
  again > 0 AND gone > 0 AS broken
FROM (
  SELECT
    queue,
    any_value(log) AS log,
    min(CASE WHEN next_op IS NULL THEN offset END) AS offset,
    settle_sent AS since,
    max(next_acquired) AS until,
    count_if(next_op IS NOT NULL) AS again,
    count_if(next_op IS NULL) AS gone
  FROM handovers
  WHERE
    kind IN (1, 3)
    AND outcome IN (2, 3)
    AND attempts = 1
    AND dry
    AND present
    AND crc >= 0
    AND offset >= log_start
    AND count + blinds - blind < lowest_limit
    AND NOT coalesce(highest_before >= count, false)
  GROUP BY queue, member, settle_sent
)
WHERE again + gone > 1
