-- Where each share-partition was seen in each interval: its start offset and its lag, where any was shown.
SELECT
  run,
  share_partition,
  (received - {since}) DIV {step} AS bin,
  max(CASE WHEN spso >= 0 THEN spso END) AS spso,
  max(CASE WHEN lag >= 0 THEN lag END) AS lag
FROM offsets
WHERE spso >= 0 OR lag >= 0
GROUP BY run, share_partition, (received - {since}) DIV {step}
