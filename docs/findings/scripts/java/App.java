import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share consumer in implicit mode: polls for 5 seconds, or as many as its argument says, and closes. */
class App {
    public static void main(String[] arguments) {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"));
        var text = new StringDeserializer();
        var consumer = new KafkaShareConsumer<>(settings, text, text);
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        long seconds = arguments.length > 0 ? Long.parseLong(arguments[0]) : 5;
        for (long end = System.currentTimeMillis() + 1000 * seconds; System.currentTimeMillis() < end; ) {
            for (var record : consumer.poll(Duration.ofMillis(500))) {
                System.out.println(record.offset() + " " + record.value());
            }
        }
        consumer.close();
    }
}
