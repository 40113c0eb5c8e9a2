-- How many records were stored in each interval, as far as responses tell.
SELECT run, (received - {since}) DIV {step} AS bin, count(*) AS records
FROM produced
WHERE outcome = 1
GROUP BY run, (received - {since}) DIV {step}
