-- id: INV-36
-- level: MUST
-- source: KIP-932 §Managing the SPSO and SPEO
-- about: deletions
-- Once records were deleted, no fetch that is sent later brings one of them.
SELECT
  queue,
  log,
  offset,
  sent AS since,
  acquired AS until,
  concat('delivered though the log began at ', deleted_before) AS detail,
  offset < deleted_before AS broken
FROM (
  SELECT d.queue, d.log, d.offset, d.sent, d.acquired, max(x.before) AS deleted_before
  FROM (SELECT * FROM deliveries WHERE present AND log IN (SELECT log FROM deletions)) AS d
  JOIN (SELECT * FROM deletions WHERE outcome = 1) AS x ON x.log = d.log AND d.sent > x.answered
  GROUP BY d.queue, d.log, d.offset, d.op, d.sent, d.acquired
)
WHERE true
