import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share consumer that goes on polling after an error, as many seconds as its argument says. */
class Fatal {
    public static void main(String[] arguments) throws Exception {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"));
        var text = new StringDeserializer();
        var consumer = new KafkaShareConsumer<>(settings, text, text);
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        int empty = 0;
        for (long end = System.currentTimeMillis() + 1000 * Long.parseLong(arguments[0]); System.currentTimeMillis() < end; ) {
            try {
                var records = consumer.poll(Duration.ofMillis(500));
                empty = records.isEmpty() ? empty + 1 : 0;
                records.forEach(record -> System.out.println("offset " + record.offset()));
            } catch (Exception thrown) {
                System.out.println("poll: " + thrown);
                empty = 0;
            }
        }
        System.out.println("the last " + empty + " polls returned nothing");
        consumer.close();
    }
}
