// Produces to three partitions each second, and prints how long a record waits for its handler. Exit code 1: one waited for over three seconds.
import { KafkaClient } from '@kafkats/client'

const { SHAREPROOF_BOOTSTRAP, SHAREPROOF_GROUP, SHAREPROOF_TOPIC } = process.env
const client = new KafkaClient({ brokers: SHAREPROOF_BOOTSTRAP.split(','), clientId: 'slow' })
await client.connect()
const producer = client.producer()
const consumer = client.shareConsumer({ groupId: SHAREPROOF_GROUP, maxWaitMs: 500 })
const longest = [0, 0, 0]
const running = consumer.runEach(SHAREPROOF_TOPIC, async (message) => {
  const waited = (Date.now() - Number(message.value)) / 1000
  longest[message.partition] = Math.max(longest[message.partition], waited)
  console.log(`partition ${message.partition}, record ${message.offset}: ${waited.toFixed(1)} s after it was produced`)
})
await new Promise((resolve) => setTimeout(resolve, 10_000)) // it joins, and its first fetches are over
for (let second = 0; second < 14; second++) {
  await producer.send(SHAREPROOF_TOPIC, [0, 1, 2].map((partition) => ({ partition, value: Buffer.from(String(Date.now())) })))
  await new Promise((resolve) => setTimeout(resolve, 1000))
}
await consumer.stop()
await running
await client.disconnect()
const [fast] = longest.sort((one, other) => one - other)
console.log(`at the fastest broker a record waited for up to ${fast.toFixed(1)} s`)
process.exit(fast > 3 ? 1 : 0)
