-- Every epoch that was shown or stored, with the one before it.
SELECT queue, log, -1L AS offset, since, answered AS until, 'leader epoch' AS what,
  leader_epoch AS epoch, epoch_before AS before
FROM {views_of_offsets}
WHERE leader_epoch >= 0 AND sent >= since
UNION ALL
SELECT queue, log, position, 0L, 0L, what, epoch,
  lag(epoch) OVER (PARTITION BY queue, what ORDER BY position)
FROM (
  SELECT p.queue, s.log, p.position, p.what, max(p.epoch) AS epoch
  FROM (
    SELECT queue, position, 'stored leader epoch' AS what, leader_epoch AS epoch FROM {persisted}
    UNION ALL
    SELECT queue, position, 'stored state epoch', state_epoch FROM {persisted}
    UNION ALL
    SELECT queue, position, 'stored snapshot epoch', snapshot_epoch FROM {persisted}
  ) AS p
  JOIN {shares} AS s ON s.queue = p.queue
  WHERE p.epoch >= 0
  GROUP BY p.queue, s.log, p.position, p.what
)
