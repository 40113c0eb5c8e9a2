-- How many records were stored in each moment, as far as responses tell.
SELECT (received - :since) DIV :step AS moment, count(*) AS records
FROM produced
WHERE outcome = 1
GROUP BY (received - :since) DIV :step
