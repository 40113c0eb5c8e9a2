import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share consumer in implicit mode that goes on polling when a poll fails. */
class Patient {
    public static void main(String[] arguments) {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"));
        var text = new StringDeserializer();
        var consumer = new KafkaShareConsumer<>(settings, text, text);
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        for (long end = System.currentTimeMillis() + 30000; System.currentTimeMillis() < end; ) {
            try {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println("record " + record.offset() + ", delivery " + record.deliveryCount().orElse((short) 0));
                }
            } catch (KafkaException failed) {
                System.out.println("poll failed: " + failed.getCause());
            }
        }
        consumer.close();
    }
}
