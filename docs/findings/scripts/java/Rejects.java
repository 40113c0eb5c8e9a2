import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** One consumer with the defaults rejects nine of ten of RECORDS of SIZE bytes in PARTITIONS; their letters are copies. Finding 144. */
public class Rejects {
    private static final String PREFIX = "errors.deadletterqueue.";

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], name = "r" + System.currentTimeMillis(), dead = "dlq." + name;
        int records = Integer.parseInt(args[1]), size = Integer.parseInt(args[2]), partitions = Integer.parseInt(args[3]);
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", name);
        config.put("share.acknowledgement.mode", "explicit");
        try (Admin admin = Admin.create(config)) {
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) -1),
                new NewTopic(dead, 1, (short) -1).configs(Map.of(PREFIX + "group.enable", "true")))).all().get();
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, name);
            Map<String, String> wanted = Map.of(PREFIX + "topic.name", dead, PREFIX + "copy.record.enable", "true",
                "share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(Map.of(group, wanted.entrySet().stream().map(each -> new AlterConfigOp(
                new ConfigEntry(each.getKey(), each.getValue()), AlterConfigOp.OpType.SET)).toList())).all().get();

            byte[] value = new byte[size];
            new Random(1).nextBytes(value);
            try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int record = 0; record < records; record++) {
                    producer.send(new ProducerRecord<>(name, record % partitions, null, value));
                }
            }
            long began = System.currentTimeMillis();
            int rejected = 0, settled = 0;
            TopicPartition letters = new TopicPartition(dead, 0);
            try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(name));
                while (settled < records && System.currentTimeMillis() - began < 120_000) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(5))) {
                        boolean good = record.offset() % 10 == 0;
                        consumer.acknowledge(record, good ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT);
                        rejected += good ? 0 : 1;
                        settled++;
                    }
                    consumer.commitSync(Duration.ofSeconds(20));
                    System.out.printf("%6d ms: %d rejected%n", System.currentTimeMillis() - began, rejected);
                }
            }
            for (long end = 0; end < rejected && System.currentTimeMillis() - began < 240_000; Thread.sleep(3000)) {
                end = admin.listOffsets(Map.of(letters, OffsetSpec.latest())).partitionResult(letters).get().offset();
                System.out.printf("%6d ms: %d of %d letters%n", System.currentTimeMillis() - began, end, rejected);
            }
        }
    }
}
