import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.springframework.kafka.core.DefaultShareConsumerFactory;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.listener.ShareKafkaMessageListenerContainer;

/** A listener container of a share group with its defaults; says each second whether it runs, and ends after as many as asked. */
class Listening {
    public static void main(String[] arguments) throws Exception {
        var servers = Map.<String, Object>of("bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"));
        var consumers = new DefaultShareConsumerFactory<String, String>(
                servers, StringDeserializer::new, StringDeserializer::new);
        var properties = new ContainerProperties(System.getenv("SHAREPROOF_TOPIC"));
        properties.setGroupId(System.getenv("SHAREPROOF_GROUP"));
        var container = new ShareKafkaMessageListenerContainer<>(consumers, properties);
        container.setBeanName("container");
        container.setApplicationEventPublisher(event -> System.out.println(event));
        container.setupMessageListener((MessageListener<String, String>) (ConsumerRecord<String, String> record) ->
                System.out.println("offset " + record.offset()));
        container.start();
        for (int second = 0; second < Integer.parseInt(arguments[0]); second++) {
            Thread.sleep(1000);
            boolean alive = Thread.getAllStackTraces().keySet().stream().anyMatch(one -> one.getName().startsWith("container-C-"));
            System.out.println("isRunning " + container.isRunning() + ", its thread " + (alive ? "runs" : "has ended"));
        }
        container.stop();
    }
}
