import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** What becomes of an exception in the acknowledgement callback. */
class Callback {
    public static void main(String[] arguments) {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"),
                "share.acknowledgement.mode", "explicit");
        var text = new StringDeserializer();
        var consumer = new KafkaShareConsumer<>(settings, text, text);
        consumer.setAcknowledgementCommitCallback((offsets, exception) -> {
            System.out.println("told of " + offsets.values() + ", " + exception);
            throw new IllegalArgumentException("the callback threw this");
        });
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        var records = consumer.poll(Duration.ofMillis(500));
        while (records.isEmpty()) {
            records = consumer.poll(Duration.ofMillis(500));
        }
        records.forEach(consumer::acknowledge);
        report("commitSync", consumer::commitSync);
        report("poll", () -> consumer.poll(Duration.ofSeconds(1)));
        consumer.close();
    }

    private static void report(String what, Runnable call) {
        try {
            call.run();
            System.out.println(what + " returned");
        } catch (RuntimeException thrown) {
            System.out.println(what + ": " + thrown + " <- " + thrown.getCause());
        }
    }
}
