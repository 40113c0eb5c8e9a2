// Acknowledges a record after its consumer was stopped, and prints what the promise came to.
import { KafkaClient } from '@kafkats/client'

const { SHAREPROOF_BOOTSTRAP, SHAREPROOF_GROUP, SHAREPROOF_TOPIC } = process.env
const client = new KafkaClient({ brokers: SHAREPROOF_BOOTSTRAP.split(','), clientId: 'late' })
await client.connect()
const consumer = client.shareConsumer({ groupId: SHAREPROOF_GROUP, maxWaitMs: 500 })
let kept = null
const came = new Promise((resolve) => {
  consumer.runEach(SHAREPROOF_TOPIC, (message, context) => {
    kept ??= message
    resolve()
    return new Promise((_, fail) => context.signal.addEventListener('abort', () => fail(new Error('stopped'))))
  }).catch(() => {})
})
await came
await consumer.stop()
await kept.ack().then(() => console.log(`ack() of ${kept.offset} succeeded`), (error) => console.log('ack() failed:', error.message))
await client.disconnect()
