import java.util.Map;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.AcknowledgingShareConsumerAwareMessageListener;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.ContainerProperties.ShareAckMode;
import org.springframework.kafka.listener.ShareKafkaMessageListenerContainer;
import org.springframework.kafka.support.ShareAcknowledgment;

/**
 * A listener in MANUAL mode that works 7 s for a record, renews its lock each second meanwhile, and then accepts it: on the
 * container's thread with "inline"; on a thread of its own for each record with "async". With "once" it is done at once, renews
 * once, and accepts.
 */
class Renewing {
    private static int seconds = 7;
    private static long pause;

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
                (record, acknowledgment, consumer) -> {
                    System.out.println("offset " + record.offset() + ", delivery " + record.deliveryCount().orElse((short) 0)
                            + ": the listener begins");
                    if (arguments[0].equals("inline")) {
                        work(record.offset(), acknowledgment);
                    } else {
                        new Thread(() -> work(record.offset(), acknowledgment)).start();
                    }
                });
        seconds = arguments[0].equals("once") ? 1 : 7;
        pause = arguments.length > 1 ? Long.parseLong(arguments[1]) : 0;
        container.start();
        Thread.sleep(14_000);
        Runtime.getRuntime().halt(0);
    }

    private static void work(long offset, ShareAcknowledgment acknowledgment) {
        try {
            for (int second = 0; second < seconds; second++) {
                Thread.sleep(seconds == 1 ? 0 : 1000);
                acknowledgment.renew();
            }
            Thread.sleep(pause);
            acknowledgment.acknowledge();
            System.out.println("offset " + offset + ": accepted");
        } catch (InterruptedException | IllegalStateException thrown) {
            System.out.println("offset " + offset + ": " + thrown);
        }
    }
}
