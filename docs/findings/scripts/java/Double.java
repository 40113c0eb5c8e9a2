import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.MockShareConsumer;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.StringDeserializer;

/** The same calls to MockShareConsumer, which is handed one record, and to a share consumer at the broker, and what each returns. */
class Double {
    static final String TOPIC = System.getenv("SHAREPROOF_TOPIC");
    static final short FIRST = 1;

    /** A consumer, the last record that it gave, and how often its callback was called. */
    static class Calls {
        final ShareConsumer<String, String> consumer;
        final boolean mock;
        ConsumerRecord<String, String> last;
        int told;

        Calls(ShareConsumer<String, String> consumer, boolean mock) {
            this.consumer = consumer;
            this.mock = mock;
        }

        void subscribe() {
            consumer.setAcknowledgementCommitCallback((offsets, error) -> told++);
            consumer.subscribe(List.of(TOPIC));
            if (mock) {
                ((MockShareConsumer<String, String>) consumer).addRecord(new ConsumerRecord<>(TOPIC, 0, 0, 0, TimestampType.CREATE_TIME,
                        0, 0, "", "", new RecordHeaders(), Optional.empty(), Optional.of(FIRST)));
            }
        }

        /** What a poll that waits for a record gives; of a real consumer the first polls join the group. */
        String take() {
            for (long end = System.currentTimeMillis() + 15_000; System.currentTimeMillis() < end; ) {
                String got = poll(1000);
                if (mock || !got.equals("no record")) {
                    return got;
                }
            }
            return "no record";
        }

        String poll(long millis) {
            var records = consumer.poll(Duration.ofMillis(millis));
            ConsumerRecord<String, String> before = last;
            for (var record : records) {
                last = record;
            }
            if (records.isEmpty()) {
                return "no record";
            }
            String same = before != null && before.offset() == last.offset() ? "the same record" : records.count() + " record(s)";
            return same + ", delivery " + last.deliveryCount().map(String::valueOf).orElse("unknown");
        }

        String accept() {
            consumer.acknowledge(last);
            return "taken";
        }

        String commit() {
            var results = consumer.commitSync(Duration.ofSeconds(10));
            return results.size() + " result(s)";
        }
    }

    record Step(String name, Function<Calls, String> call) {}

    static Step step(String name, Function<Calls, String> call) {
        return new Step(name, call);
    }

    static final Step TAKE = step("poll", Calls::take);
    static final Step ACCEPT = step("acknowledge", Calls::accept);
    static final Step COMMIT = step("commitSync", Calls::commit);
    static final Step RELEASE = step("acknowledge RELEASE", c -> {
        c.consumer.acknowledge(c.last, AcknowledgeType.RELEASE);
        return "taken";
    });
    static final Step CLOSE = step("close", c -> {
        c.consumer.close(Duration.ofSeconds(5));
        return "closed";
    });
    static final Step TOLD = step("the callback", c -> c.told + " call(s)");

    static Map<String, List<Step>> sequences() {
        var all = new LinkedHashMap<String, List<Step>>();
        all.put("implicit", List.of(TAKE, ACCEPT, COMMIT, TOLD, CLOSE, COMMIT));
        all.put("explicit, accepted", List.of(TAKE, ACCEPT, COMMIT, ACCEPT, TOLD));
        all.put("explicit, nothing acknowledged", List.of(TAKE, TAKE));
        all.put("explicit, released", List.of(TAKE, RELEASE, COMMIT, TAKE));
        all.put("explicit, of no delivery", List.of(TAKE, step("acknowledge offset 10^6", c -> {
            c.consumer.acknowledge(TOPIC, 0, 1_000_000, AcknowledgeType.ACCEPT);
            return "taken";
        })));
        all.put("explicit, woken up", List.of(TAKE, ACCEPT, step("wakeup", c -> {
            c.consumer.wakeup();
            return "done";
        }), TAKE));
        all.put("explicit, the lock", List.of(TAKE, step("acquisitionLockTimeoutMs", c -> "" + c.consumer.acquisitionLockTimeoutMs())));
        all.put("explicit, unsubscribed", List.of(TAKE, ACCEPT, step("unsubscribe", c -> {
            c.consumer.unsubscribe();
            return "done";
        }), step("a poll", c -> c.poll(100))));
        all.put("explicit, closed", List.of(TAKE, CLOSE, ACCEPT, COMMIT, step("wakeup", c -> {
            c.consumer.wakeup();
            return "done";
        })));
        return all;
    }

    static List<String> play(Calls calls, List<Step> steps) {
        var seen = new ArrayList<String>();
        calls.subscribe();
        for (Step step : steps) {
            try {
                seen.add(step.call.apply(calls));
            } catch (Exception thrown) {
                seen.add(thrown.getClass().getSimpleName());
            }
        }
        try { // what is left to the next sequence is a record that nobody was given yet
            calls.accept();
            calls.commit();
        } catch (IllegalStateException done) {
            // it is accepted, or the consumer is closed
        }
        calls.consumer.close(Duration.ofSeconds(5));
        return seen;
    }

    public static void main(String[] arguments) {
        int calls = 0, other = 0;
        for (var sequence : sequences().entrySet()) {
            var settings = Map.<String, Object>of(
                    "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"), "group.id", System.getenv("SHAREPROOF_GROUP"),
                    "share.acknowledgement.mode", sequence.getKey().split(",")[0], "max.poll.records", 1, "share.acquire.mode", "record_limit");
            var text = new StringDeserializer();
            var steps = sequence.getValue();
            List<String> real = play(new Calls(new KafkaShareConsumer<>(settings, text, text), false), steps);
            List<String> mock = play(new Calls(new MockShareConsumer<>(), true), steps);
            System.out.println(sequence.getKey());
            for (int index = 0; index < steps.size(); index++) {
                calls++;
                boolean same = real.get(index).equals(mock.get(index));
                other += same ? 0 : 1;
                System.out.printf("  %-26s %-32s %s%n", steps.get(index).name, real.get(index), same ? "the same" : mock.get(index));
            }
        }
        System.out.println(other + " of " + calls + " calls of the double return something else");
        System.exit(other > 0 ? 1 : 0);
    }
}
