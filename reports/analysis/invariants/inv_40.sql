-- id: INV-40
-- level: SHOULD
-- source: Kafka PersisterStateManager, KAFKA-19927
-- An acknowledgement is not given up as soon as the share coordinator cannot be reached: none is answered
-- with UNKNOWN_SERVER_ERROR within two seconds.
SELECT
  queue,
  log,
  offset,
  settle_sent AS since,
  settle_answered AS until,
  concat('an acknowledgement was answered with UNKNOWN_SERVER_ERROR after ',
    (settle_answered - settle_sent) DIV 1000000, ' ms') AS detail,
  error = -1 AND settle_answered - settle_sent < 2000000000L AS broken
FROM handovers
WHERE kind BETWEEN 1 AND 4 AND outcome BETWEEN 1 AND 2
