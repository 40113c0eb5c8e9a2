-- id: INV-24
-- level: MUST
-- source: KIP-932 §Managing the SPSO and SPEO
-- When nobody produces any more and everybody accepts, every start offset reaches the end of its log
-- in the time the run allows, and the lag becomes zero. The start offset that is shown may be one write
-- behind, so where there is a lag to see, that decides.
SELECT
  queue,
  log,
  spso AS offset,
  sent AS since,
  answered AS until,
  concat('start offset ', spso, ' of ', log_end, ', lag ', lag, ' at the end',
    CASE WHEN log_start > spso THEN concat(', the log begins at ', log_start) ELSE '' END) AS detail,
  lag > 0 AS broken
FROM endings
WHERE lag >= 0 OR spso >= log_end
