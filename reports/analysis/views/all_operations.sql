-- Every request. Of those that took a minute more than they may wait: in how many seconds meanwhile
-- their process got, from the same broker, a response that did not take long.
SELECT o.*, coalesce(c.answering, 0) AS answering
FROM {operations} AS o
LEFT JOIN (
  SELECT /*+ BROADCAST(late) */ late.run, late.op,
    size(collect_set(other.received DIV 1000000000)) AS answering
  FROM {operations} AS late
  JOIN {operations} AS other
    ON other.run = late.run AND other.process = late.process AND other.node = late.node
    AND other.sent >= late.sent AND other.received <= late.received
    AND other.received - other.sent <= 1000000L * other.max_wait_ms + 1000000000L
  WHERE late.received - late.sent > 1000000L * late.max_wait_ms + 60000000000L
    AND other.received >= 0
  GROUP BY late.run, late.op
) AS c
  ON c.run = o.run AND c.op = o.op
