-- One row for each record of a log, with what was produced there and what every group
-- made of it. "owed" and "seen" have a bit for each group of the log: a record is owed to those that reached the end of
-- the log, and to all if each of the others showed a start offset beyond it. A delivery without the payload is
-- none of a record whose batch has a CRC: nothing rewrites such a log, so there was something to deliver.
-- What is sent around is the logs, however many Spark expects: it would move all records instead.
SELECT /*+ BROADCAST(l) */
  coalesce(p.run, d.run) AS run,
  coalesce(p.log, d.log) AS log,
  coalesce(p.offset, d.offset) AS offset,
  p.log IS NOT NULL AS was_produced,
  p.producer,
  p.sequence,
  p.crc,
  p.sent AS produced_sent,
  p.received AS produced_received,
  p.transaction,
  d.log IS NOT NULL AS was_delivered,
  d.first_sent,
  d.last_acquired,
  d.low_producer,
  d.high_producer,
  d.low_sequence,
  d.high_sequence,
  d.low_crc,
  d.high_crc,
  coalesce(d.present, false) AS present,
  coalesce(CASE WHEN p.crc >= 0 THEN d.came ELSE d.listed END, 0) AS seen,
  coalesce(d.came, 0) & l.committed AS seen_committed,
  CASE
    WHEN p.offset >= l.owed_from THEN
      (l.owed | CASE WHEN p.sent > l.unseen_until THEN l.owed_after ELSE 0 END)
      & CASE WHEN p.offset < l.passed THEN -1L ELSE l.finished END
    ELSE 0
  END AS owed,
  l.share_partition,
  u.log IS NOT NULL AS may_be_stored
FROM (SELECT * FROM {produced} WHERE offset >= 0) AS p
FULL OUTER JOIN (
  SELECT
    any_value(run) AS run,
    log,
    offset,
    min(sent) AS first_sent,
    max(acquired) AS last_acquired,
    min(CASE WHEN present THEN producer END) AS low_producer,
    max(CASE WHEN present THEN producer END) AS high_producer,
    min(CASE WHEN present THEN sequence END) AS low_sequence,
    max(CASE WHEN present THEN sequence END) AS high_sequence,
    min(CASE WHEN crc >= 0 THEN crc END) AS low_crc,
    max(CASE WHEN crc >= 0 THEN crc END) AS high_crc,
    max(present) AS present,
    bit_or(bit) AS listed,
    bit_or(CASE WHEN present THEN bit ELSE 0 END) AS came
  FROM (
    SELECT /*+ BROADCAST(s) */ d.*, shiftleft(1L, s.slot) AS bit
    FROM {deliveries} AS d
    JOIN {partitions} AS s ON s.share_partition = d.share_partition
  )
  GROUP BY {by_run}log, offset
) AS d ON {same_run}d.log = p.log AND d.offset = p.offset
LEFT JOIN (
  SELECT
    run,
    log,
    min(share_partition) AS share_partition,
    bit_or(CASE WHEN unseen_until < 0 THEN shiftleft(1L, slot) ELSE 0 END) AS owed,
    bit_or(CASE WHEN unseen_until >= 0 THEN shiftleft(1L, slot) ELSE 0 END) AS owed_after,
    bit_or(CASE WHEN drained THEN shiftleft(1L, slot) ELSE 0 END) AS finished,
    coalesce(min(CASE WHEN NOT drained THEN passed END), max(9223372036854775807L)) AS passed,
    max(unseen_until) AS unseen_until,
    bit_or(CASE WHEN committed_only THEN shiftleft(1L, slot) ELSE 0 END) AS committed,
    max(greatest(first, log_start)) AS owed_from
  FROM {partitions}
  GROUP BY run, log
) AS l ON l.run = coalesce(p.run, d.run) AND l.log = coalesce(p.log, d.log)
LEFT JOIN {unconfirmed} AS u
  ON u.run = d.run AND u.log = d.log AND u.producer = d.low_producer AND u.sequence = d.low_sequence
