import jakarta.enterprise.context.ApplicationScoped;
import org.eclipse.microprofile.reactive.messaging.Incoming;
import org.jboss.weld.environment.se.Weld;

/** A channel of a share group with its defaults; what its method returns from is accepted. Ends after so many seconds. */
public class Channel {
    private static final long START = System.currentTimeMillis();

    public static void main(String[] arguments) throws Exception {
        set("connector", "smallrye-kafka");
        set("bootstrap.servers", System.getenv("SHAREPROOF_BOOTSTRAP"));
        set("topic", System.getenv("SHAREPROOF_TOPIC"));
        set("group.id", System.getenv("SHAREPROOF_GROUP"));
        set("share-group", "true");
        set("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        set("health-enabled", "false");
        set("tracing-enabled", "false");
        new Weld().initialize();
        Thread.sleep(1000 * Long.parseLong(arguments[0]));
        Runtime.getRuntime().halt(0);
    }

    private static void set(String name, String value) {
        System.setProperty("mp.messaging.incoming.orders." + name, value);
    }

    /** Takes what comes. */
    @ApplicationScoped
    public static class Orders {
        @Incoming("orders")
        public void take(String order) {
            System.out.printf("%.1f s: processed %s%n", (System.currentTimeMillis() - START) / 1000.0, order);
        }
    }
}
