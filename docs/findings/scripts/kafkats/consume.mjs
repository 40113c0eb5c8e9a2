// A share consumer that handles records for some seconds, and stops.
import { KafkaClient } from '@kafkats/client'

const { SHAREPROOF_BOOTSTRAP, SHAREPROOF_GROUP, SHAREPROOF_TOPIC } = process.env
const client = new KafkaClient({ brokers: SHAREPROOF_BOOTSTRAP.split(','), clientId: 'consume' })
await client.connect()
const consumer = client.shareConsumer({ groupId: SHAREPROOF_GROUP, maxWaitMs: 500 })
consumer.on('error', (error) => console.log('error', error.message))
setTimeout(() => consumer.stop(), Number(process.argv[2] ?? 6) * 1000)
await consumer
  .runEach(SHAREPROOF_TOPIC, async (message) => console.log(`record ${message.offset}, delivery ${message.deliveryCount}`))
  .catch((error) => console.log('runEach ended:', error.message))
await client.disconnect()
