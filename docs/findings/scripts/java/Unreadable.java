import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A share consumer in implicit mode whose third value cannot be read. It goes on polling for 10 s.
 * Then it closes itself, and says which of its own metrics are left.
 */
class Unreadable {
    private static int values;

    public static void main(String[] arguments) {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"));
        Deserializer<String> third = (topic, data) -> {
            if (++values == 3) {
                throw new SerializationException("the third value");
            }
            return "read";
        };
        var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), third);
        consumer.setAcknowledgementCommitCallback((offsets, error) -> System.out.println("told of " + offsets + ": " + error));
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        for (long end = System.currentTimeMillis() + 10000; System.currentTimeMillis() < end; ) {
            try {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println("record " + record.offset() + ", delivery " + record.deliveryCount().orElse((short) 0));
                }
            } catch (SerializationException failed) {
                System.out.println("poll failed: " + failed.getMessage());
            }
        }
        consumer.close();
        consumer.metrics().keySet().stream()
                .filter(name -> name.group().startsWith("consumer-share") && name.tags().keySet().equals(Set.of("client-id")))
                .forEach(name -> System.out.println("left: " + name.name()));
    }
}
