import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share consumer in explicit mode whose process stands still for 4 s, 2 s after it began. */
class Frozen {
    public static void main(String[] arguments) throws Exception {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"),
                "share.acknowledgement.mode", "explicit");
        var text = new StringDeserializer();
        var consumer = new KafkaShareConsumer<>(settings, text, text);
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        String self = Long.toString(ProcessHandle.current().pid());
        new ProcessBuilder("sh", "-c", "sleep 2; kill -STOP $0; sleep 4; kill -CONT $0", self).start();
        int refused = 0;
        for (long end = System.currentTimeMillis() + 12_000; System.currentTimeMillis() < end; ) {
            try {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println("offset " + record.offset() + ", delivery " + record.deliveryCount().orElse((short) 0));
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
            } catch (IllegalStateException thrown) {
                if (refused++ == 0) {
                    System.out.println("poll: " + thrown.getMessage());
                }
                Thread.sleep(100);
            }
        }
        System.out.println("poll threw " + refused + " times");
        consumer.close();
    }
}
