import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Makes a share consumer with each setting of its arguments, NAME=VALUE, and prints whether it was refused. No broker is needed. */
class Settings {
    public static void main(String[] arguments) {
        var text = new StringDeserializer();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", "127.0.0.1:1", "group.id", "g"));
            settings.put(parts[0], parts[1]);
            try {
                new KafkaShareConsumer<>(settings, text, text).close(java.time.Duration.ZERO);
                System.out.println(argument + ": taken");
            } catch (Exception thrown) {
                Throwable cause = thrown.getCause() == null ? thrown : thrown.getCause();
                System.out.println(argument + ": refused, " + cause.getMessage());
            }
        }
    }
}
