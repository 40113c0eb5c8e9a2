-- How long responses to acknowledgements took in each interval, in milliseconds: of one record in so many.
SELECT
  run,
  (ack_received - {since}) DIV {step} AS bin,
  percentile_approx((ack_received - ack_sent) / 1e6, array(0.5, 0.99), 1000) AS quantiles
FROM deliveries
WHERE kind IN (1, 2, 3) AND outcome = 1 AND pmod(hash(offset), {one_in}) = 0
GROUP BY run, (ack_received - {since}) DIV {step}
