-- What the numbers of share-partitions stand for.
SELECT run, share_partition, `group`, topic, partition FROM share_partitions ORDER BY share_partition
