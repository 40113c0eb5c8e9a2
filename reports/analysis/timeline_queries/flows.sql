-- What each group did in each interval: records acquired, acquired not for the first time, finished, and
-- how many more were held at its end than at its beginning. A delivery ends with its holder's answered
-- word, with its session, or with its lock at the latest. Of very many, one record in so many counts
-- for all.
SELECT
  q.run,
  q.`group`,
  e.bin,
  {one_in} * sum(e.acquired) AS acquired,
  {one_in} * sum(e.again) AS again,
  {one_in} * sum(e.finished) AS finished,
  {one_in} * sum(e.more) AS more
FROM (
  SELECT
    share_partition,
    (at - {since}) DIV {step} AS bin,
    sum(acquired) AS acquired,
    sum(again) AS again,
    sum(finished) AS finished,
    sum(more) AS more
  FROM (
    SELECT run, share_partition, inline(array(
      struct(began AS at, 1 AS acquired, again, 0 AS finished, 1 AS more),
      struct(ended AS at, 0 AS acquired, 0 AS again, finished, -1 AS more)
    ))
    FROM (
      SELECT
        run,
        share_partition,
        acquired AS began,
        CASE WHEN count > 1 THEN 1 ELSE 0 END AS again,
        CASE WHEN kind IN (1, 3) AND outcome = 1 THEN 1 ELSE 0 END AS finished,
        CASE
          WHEN kind IN (1, 2, 3) AND outcome = 1 THEN ack_received
          WHEN kind = 5 AND outcome = 1 THEN ack_sent
          ELSE ends_by
        END AS ended
      FROM deliveries
      WHERE pmod(hash(offset), {one_in}) = 0
    )
  )
  GROUP BY share_partition, (at - {since}) DIV {step}
) AS e
JOIN share_partitions AS q ON q.share_partition = e.share_partition
GROUP BY q.run, q.`group`, e.bin
