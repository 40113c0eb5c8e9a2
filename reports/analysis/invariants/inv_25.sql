-- id: INV-25
-- level: MUST
-- source: KIP-932 §Kafka protocol changes
-- Every share request on a living connection is answered within its own waiting time and a minute.
SELECT
  CAST(NULL AS INT) AS queue,
  CAST(NULL AS INT) AS log,
  op AS offset,
  sent AS since,
  answered AS until,
  concat(api, ' to broker ', node, ' took ', (answered - sent) DIV 1000000, ' ms') AS detail,
  answered - sent > 1000000L * waits_ms + 60000000000L AS broken
FROM operations
WHERE answered >= 0
