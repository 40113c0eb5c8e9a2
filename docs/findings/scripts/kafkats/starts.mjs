// Consumers that stop as soon as they have partitions, one after the other, and then one that stays.
import { KafkaClient } from '@kafkats/client'

const { SHAREPROOF_BOOTSTRAP, SHAREPROOF_GROUP, SHAREPROOF_TOPIC } = process.env
const STARTS = Number(process.argv[2] ?? 5)
const client = new KafkaClient({ brokers: SHAREPROOF_BOOTSTRAP.split(','), clientId: 'starts' })
await client.connect()

for (let number = 1; number <= STARTS; number++) {
  const consumer = client.shareConsumer({ groupId: SHAREPROOF_GROUP, maxWaitMs: 500 })
  consumer.on('error', () => {})
  consumer.on('partitionsAssigned', () => consumer.stop())
  let handled = 0
  await consumer.runEach(SHAREPROOF_TOPIC, async () => { handled++ }).catch((error) => console.log(error.message))
  console.log(`start ${number}: ${handled} records handled`)
}
const consumer = client.shareConsumer({ groupId: SHAREPROOF_GROUP, maxWaitMs: 500 })
let handled = 0
setTimeout(() => consumer.stop(), 8000)
await consumer.runEach(SHAREPROOF_TOPIC, async () => { handled++ })
console.log(`the consumer that stays handled ${handled} records in 8 seconds`)
await client.disconnect()
