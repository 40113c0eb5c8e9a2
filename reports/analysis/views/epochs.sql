-- Every epoch that was shown or stored, with the one before it.
SELECT run, share_partition, log, -1L AS offset, since, received AS until, 'leader epoch' AS what,
  leader_epoch AS epoch, epoch_before AS before
FROM {offset_samples}
-- What is not known at the coordinator is shown without a start offset, and with epoch 0.
WHERE leader_epoch >= 0 AND spso >= 0 AND sent >= since
UNION ALL
SELECT run, share_partition, log, position, 0L, 0L, what, epoch,
  lag(epoch) OVER (PARTITION BY share_partition, what ORDER BY position)
FROM (
  SELECT s.run, p.share_partition, s.log, p.position, p.what, max(p.epoch) AS epoch
  FROM (
    SELECT share_partition, position, 'stored leader epoch' AS what, leader_epoch AS epoch FROM {persisted}
    UNION ALL
    SELECT share_partition, position, 'stored state epoch', state_epoch FROM {persisted}
    UNION ALL
    SELECT share_partition, position, 'stored snapshot epoch', snapshot_epoch FROM {persisted}
  ) AS p
  JOIN {partitions} AS s ON s.share_partition = p.share_partition
  WHERE p.epoch >= 0
  GROUP BY s.run, p.share_partition, s.log, p.position, p.what
)
