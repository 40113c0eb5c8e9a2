-- id: INV-06
-- level: MUST
-- source: KIP-932 §In-flight records
-- needs: whole
-- No record is finished without a delivery whose holder accepted, rejected or exhausted it: what was
-- last released, dropped or let run out below the limit must come again before the group is done. What
-- was deleted need not, nor what compaction may have taken, whose batch has no CRC to be known by.
SELECT
  queue,
  log,
  offset,
  acquired AS since,
  ends_by AS until,
  concat('count ', count, ' was last, and ended without being finished') AS detail,
  next_op IS NULL
    AND NOT coalesce(highest_before > count, false)
    AND (kind IN (0, 5) OR (kind = 2 AND outcome = 1))
    AND attempts <= CASE WHEN kind = 2 THEN 1 ELSE 0 END
    AND count + blinds - blind < lowest_limit AS broken
FROM handovers
WHERE dry AND present AND kind IN (0, 2, 5) AND crc >= 0 AND offset >= log_start
