import java.util.Map;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.AcknowledgingShareConsumerAwareMessageListener;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.ContainerProperties.ShareAckMode;
import org.springframework.kafka.listener.ShareKafkaMessageListenerContainer;

/** A listener in MANUAL mode that works on threads of its own: 6 s for the record at offset 0, no time for others. */
class Batch {
    public static void main(String[] arguments) throws Exception {
        var servers = Map.<String, Object>of("bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"));
        var consumers = new DefaultShareConsumerFactory<String, String>(
                servers, StringDeserializer::new, StringDeserializer::new);
        var properties = new ContainerProperties(System.getenv("SHAREPROOF_TOPIC"));
        properties.setGroupId(System.getenv("SHAREPROOF_GROUP"));
        properties.setShareAckMode(ShareAckMode.MANUAL);
        var container = new ShareKafkaMessageListenerContainer<>(consumers, properties);
        container.setBeanName("container");
        container.setupMessageListener((AcknowledgingShareConsumerAwareMessageListener<String, String>)
                (record, acknowledgment, consumer) -> new Thread(() -> {
                    System.out.println("offset " + record.offset() + ", delivery " + record.deliveryCount().orElse((short) 0));
                    try {
                        Thread.sleep(record.offset() == 0 ? 6000 : 0);
                    } catch (InterruptedException stopped) {
                        return;
                    }
                    acknowledgment.acknowledge();
                    System.out.println("offset " + record.offset() + ": accepted");
                }).start());
        container.start();
        Thread.sleep(Integer.parseInt(arguments[0]) * 1000L);
        Runtime.getRuntime().halt(0);
    }
}
