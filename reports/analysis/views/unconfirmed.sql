-- Records of which nobody knows whether they were stored, and where.
SELECT DISTINCT run, log, producer, sequence FROM {produced} WHERE offset < 0
