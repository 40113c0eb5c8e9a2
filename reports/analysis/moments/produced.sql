-- How many records were stored in each moment, as far as answers tell.
SELECT (answered - :since) DIV :step AS moment, count(*) AS records
FROM produced
WHERE outcome = 1
GROUP BY (answered - :since) DIV :step
