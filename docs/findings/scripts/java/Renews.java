import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A share consumer that works on offset 0 for 26 s, renews it with each poll, and accepts all others at once. */
class Renews {
    public static void main(String[] arguments) throws InterruptedException {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"),
                "group.id", System.getenv("SHAREPROOF_GROUP"),
                "share.acknowledgement.mode", "explicit",
                "max.poll.records", "10");
        var text = new StringDeserializer();
        var consumer = new KafkaShareConsumer<>(settings, text, text);
        consumer.subscribe(List.of(System.getenv("SHAREPROOF_TOPIC")));
        var given = new TreeSet<Long>();
        int polls = 0;
        for (long end = System.currentTimeMillis() + 26000; System.currentTimeMillis() < end; Thread.sleep(100)) {
            for (var record : consumer.poll(Duration.ofMillis(500))) {
                given.add(record.offset());
                consumer.acknowledge(record, record.offset() == 0 ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT);
            }
            polls++;
        }
        System.out.println(polls + " polls gave " + given);
        consumer.close();
    }
}
