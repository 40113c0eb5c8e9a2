-- id: INV-15
-- level: SHOULD
-- source: KIP-932 §In-flight records, KAFKA-19972
-- A delivery that ends with its member's session counts: between two loads the next one does not have
-- the same count, so that a client which dies of a record does not get it for ever.
SELECT
  queue,
  log,
  offset,
  freed AS since,
  next_acquired AS until,
  concat('its holder was gone after the delivery with count ', count,
    ', and it came again with count ', next_count) AS detail,
  next_count = count AS broken
FROM handovers
WHERE
  kind = 5
  AND freed < holds_until
  AND same_reign
  AND next_sent > acquired
  AND next_op <> op
