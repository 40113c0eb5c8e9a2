-- id: INV-22
-- level: MUST
-- source: KIP-932 §Persistence and fail-over
-- Leader epochs, state epochs and snapshot epochs of a share-partition never go back.
SELECT
  queue,
  log,
  offset,
  since,
  until,
  concat(what, ' ', before, ' was followed by ', epoch) AS detail,
  epoch < before AS broken
FROM epochs
WHERE before IS NOT NULL
