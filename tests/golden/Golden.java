import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;

/**
 * The oracle of our wire code: what kafka-clients itself makes of a message or a record batch.
 *
 * <p>Reads one JSON object a line and answers with one JSON object a line, so that all cases share
 * one start of the JVM. Bytes are base64. A case that Java refuses is answered with its "error".
 *
 * <ul>
 *   <li>{"op": "message", "name", "version", "json", "tags"} - "bytes" as Java serializes it
 *   <li>{"op": "default", "name", "version"} - "bytes" of a message of which nothing was set
 *   <li>{"op": "headers", "apiKey", "version"} - the header versions of "request" and "response"
 *   <li>{"op": "build", "codec", "baseOffset", ..., "records"} - "bytes" of a batch made by Java
 *   <li>{"op": "marker", "type", ...} - "bytes" of a control batch made by Java
 *   <li>{"op": "read", "bytes"} - "batches" as Java understands them
 * </ul>
 */
public final class Golden {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String MESSAGES = "org.apache.kafka.common.message.";
    private static final Map<String, Method> READERS = new HashMap<>();

    private Golden() {
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(JSON.readTree(line)));
        }
        out.flush();
    }

    private static ObjectNode answer(JsonNode question) {
        try {
            switch (question.get("op").asText()) {
                case "message":
                    return bytes(message(question));
                case "build":
                    return bytes(build(question));
                case "default":
                    return bytes(defaults(question));
                case "headers":
                    return headers(question);
                case "marker":
                    return bytes(marker(question));
                default:
                    return read(question);
            }
        } catch (Exception error) {
            return JSON.createObjectNode().put("error", String.valueOf(error));
        }
    }

    private static ObjectNode bytes(ByteBuffer buffer) {
        return JSON.createObjectNode().put("bytes", base64(buffer));
    }

    private static String base64(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return Base64.getEncoder().encodeToString(copy);
    }

    private static byte[] binary(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static ByteBuffer message(JsonNode question) throws Exception {
        short version = (short) question.get("version").asInt();
        Method reader = READERS.get(question.get("name").asText());
        if (reader == null) {
            reader = reader(question.get("name").asText());
            READERS.put(question.get("name").asText(), reader);
        }
        Message message;
        try {
            message = (Message) reader.invoke(null, question.get("json"), version);
        } catch (InvocationTargetException wrapped) {
            throw (Exception) wrapped.getCause();
        }
        for (JsonNode tag : question.get("tags")) {
            message.unknownTaggedFields().add(
                new RawTaggedField(tag.get("tag").asInt(), binary(tag.get("bytes"))));
        }
        return MessageUtil.toByteBufferAccessor(message, version).buffer();
    }

    /** Requests and responses are FooData in Java, record values plainly Foo. */
    private static Method reader(String name) throws ReflectiveOperationException {
        Class<?> converter;
        try {
            converter = Class.forName(MESSAGES + name + "DataJsonConverter");
        } catch (ClassNotFoundException plain) {
            converter = Class.forName(MESSAGES + name + "JsonConverter");
        }
        return converter.getMethod("read", JsonNode.class, short.class);
    }

    private static ByteBuffer defaults(JsonNode question) throws ReflectiveOperationException {
        String name = question.get("name").asText();
        Class<?> type = reader(name).getReturnType();
        Message message = (Message) type.getConstructor().newInstance();
        return MessageUtil.toByteBufferAccessor(
            message, (short) question.get("version").asInt()).buffer();
    }

    private static ObjectNode headers(JsonNode question) {
        ApiKeys api = ApiKeys.forId(question.get("apiKey").asInt());
        short version = (short) question.get("version").asInt();
        return JSON.createObjectNode()
            .put("request", api.requestHeaderVersion(version))
            .put("response", api.responseHeaderVersion(version));
    }

    private static ByteBuffer build(JsonNode question) {
        List<SimpleRecord> records = new ArrayList<>();
        for (JsonNode record : question.get("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : record.get("headers")) {
                headers.add(new RecordHeader(header.get(0).asText(), binary(header.get(1))));
            }
            records.add(new SimpleRecord(
                record.get("timestamp").asLong(),
                binary(record.get("key")),
                binary(record.get("value")),
                headers.toArray(new Header[0])));
        }
        CompressionType codec = CompressionType.forName(question.get("codec").asText());
        return MemoryRecords.withIdempotentRecords(
            RecordBatch.MAGIC_VALUE_V2,
            question.get("baseOffset").asLong(),
            Compression.of(codec).build(),
            question.get("producerId").asLong(),
            (short) question.get("producerEpoch").asInt(),
            question.get("baseSequence").asInt(),
            question.get("leaderEpoch").asInt(),
            records.toArray(new SimpleRecord[0])).buffer();
    }

    private static ByteBuffer marker(JsonNode question) {
        return MemoryRecords.withEndTransactionMarker(
            question.get("baseOffset").asLong(),
            question.get("timestamp").asLong(),
            question.get("leaderEpoch").asInt(),
            question.get("producerId").asLong(),
            (short) question.get("producerEpoch").asInt(),
            new EndTransactionMarker(
                ControlRecordType.valueOf(question.get("type").asText()),
                question.get("coordinatorEpoch").asInt())).buffer();
    }

    private static ObjectNode read(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode batches = answer.putArray("batches");
        ByteBuffer data = ByteBuffer.wrap(binary(question.get("bytes")));
        for (RecordBatch batch : MemoryRecords.readableRecords(data).batches()) {
            batch.ensureValid();
            ObjectNode shown = batches.addObject()
                .put("baseOffset", batch.baseOffset())
                .put("lastOffset", batch.lastOffset())
                .put("leaderEpoch", batch.partitionLeaderEpoch())
                .put("codec", batch.compressionType().name)
                .put("timestampType", batch.timestampType().name())
                .put("maxTimestamp", batch.maxTimestamp())
                .put("producerId", batch.producerId())
                .put("producerEpoch", batch.producerEpoch())
                .put("baseSequence", batch.baseSequence())
                .put("transactional", batch.isTransactional())
                .put("control", batch.isControlBatch())
                .put("deleteHorizon", batch.deleteHorizonMs().orElse(-1));
            ArrayNode records = shown.putArray("records");
            for (Record record : batch) {
                show(record, records.addObject());
            }
        }
        return answer;
    }

    private static void show(Record record, ObjectNode shown) {
        shown.put("offset", record.offset())
            .put("timestamp", record.timestamp())
            .put("key", base64(record.key()))
            .put("value", base64(record.value()));
        ArrayNode headers = shown.putArray("headers");
        for (Header header : record.headers()) {
            byte[] value = header.value();
            headers.addArray()
                .add(header.key())
                .add(value == null ? null : Base64.getEncoder().encodeToString(value));
        }
    }
}
