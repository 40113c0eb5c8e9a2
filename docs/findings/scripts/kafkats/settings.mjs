// Makes share consumers with values that mean nothing, and prints which are refused. No broker is needed.
import { KafkaClient } from '@kafkats/client'

const tries = [
  { acquireMode: 'RECORD_LIMIT' }, { acquireMode: 'record-limit' }, { maxRecords: 0 }, { maxRecords: 2 ** 31 },
  { maxWaitMs: -1 }, { maxWaitMs: 2 ** 31 }, { requestTimeoutMs: -1 }, { metadataRefreshIntervalMs: -1 },
]
for (const settings of tries) {
  try {
    const client = new KafkaClient({ brokers: ['127.0.0.1:1'], clientId: 'settings', ...settings })
    client.shareConsumer({ groupId: 'g', ...settings })
    console.log(settings, 'taken')
  } catch (error) {
    console.log(settings, 'refused,', error.message)
  }
}
