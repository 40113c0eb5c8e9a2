-- id: INV-04
-- level: MUST
-- source: KIP-932 §In-flight records
-- needs: whole
-- What is delivered at an offset is what its producer was told to have been stored there, byte for
-- byte where the batch is still the one that was sealed.
SELECT
  queue,
  log,
  offset,
  first_sent AS since,
  last_acquired AS until,
  CASE
    WHEN NOT was_produced
      THEN concat('record ', low_sequence, ' of producer ', low_producer, ' was stored by nobody')
    ELSE concat(
      'record ', sequence, ' of producer ', producer, ' was stored, ',
      low_sequence, ' of ', low_producer, ' to ', high_sequence, ' of ', high_producer, ' delivered'
    )
  END AS detail,
  CASE
    WHEN NOT was_produced THEN NOT may_be_stored
    ELSE low_producer <> producer
      OR high_producer <> producer
      OR low_sequence <> sequence
      OR high_sequence <> sequence
      OR (crc >= 0 AND (low_crc <> crc OR high_crc <> crc))
  END AS broken
FROM ledger
WHERE was_delivered AND present
