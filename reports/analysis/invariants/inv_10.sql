-- id: INV-10
-- level: MUST
-- source: KIP-932 §Concepts
-- needs: whole
-- about: persisted
-- What the members of one group finish does not become finished for another: nothing is stored as
-- finished that members of other groups finished and none of this one.
SELECT
  queue,
  log,
  offset,
  since,
  until,
  concat('stored in state ', state, ', though only members of other groups finished it') AS detail,
  NOT own AS broken
FROM finishes
WHERE others
