import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.avro.AvroTypeException;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.file.SeekableByteArrayInput;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.Decoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;

/**
 * Reads what weir wrote with Avro's Java implementation, and writes it again.
 *
 * <p>Judge ASKED ANSWERED: a list of questions about one schema or about two, and the file for as many answers.
 */
final class Judge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws IOException {
        ArrayNode answers = JSON.createArrayNode();
        int number = 0;
        for (JsonNode question : JSON.readTree(new File(arguments[0]))) {
            try {
                answers.add(question.has("reader") ? resolved(question) : written(question));
            } catch (Exception error) {
                throw new IOException("question " + number + ": " + question, error);
            }
            number++;
        }
        JSON.writeValue(new File(arguments[1]), answers);
    }

    private static Schema schema(JsonNode question, String name) {
        return new Schema.Parser().parse(question.get(name).asText());
    }

    private static byte[] bytes(JsonNode question, String name) {
        return HEX.parseHex(question.get(name).asText());
    }

    /** All values, read in each form, and written in it. */
    private static ObjectNode written(JsonNode question) throws IOException {
        Schema schema = schema(question, "schema");
        int count = question.get("count").asInt();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("canonical", SchemaNormalization.toParsingForm(schema));
        answer.put("fingerprint", Long.toHexString(SchemaNormalization.parsingFingerprint64(schema)));

        List<Object> values = binary(schema, schema, bytes(question, "plain"), count);
        answer.put("plain", HEX.formatHex(binary(schema, values)));

        List<Object> contained = new ArrayList<>();
        SeekableByteArrayInput file = new SeekableByteArrayInput(bytes(question, "container"));
        try (DataFileReader<Object> reader = new DataFileReader<>(file, new GenericDatumReader<>())) {
            reader.forEach(contained::add);
        }
        same(schema, contained, values, "container");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DataFileWriter<Object> writer = new DataFileWriter<>(new GenericDatumWriter<>(schema))) {
            writer.setCodec(CodecFactory.fromString(question.get("codec").asText()));
            // Many blocks.
            writer.setSyncInterval(100);
            writer.create(schema, out);
            for (Object value : values) {
                writer.append(value);
            }
        }
        answer.put("container", HEX.formatHex(out.toByteArray()));

        Object single = new BinaryMessageDecoder<>(GenericData.get(), schema).decode(bytes(question, "single"));
        same(schema, List.of(single), values.subList(0, 1), "single object");
        ByteArrayOutputStream message = new ByteArrayOutputStream();
        new BinaryMessageEncoder<>(GenericData.get(), schema).encode(values.get(0), message);
        answer.put("single", HEX.formatHex(message.toByteArray()));

        List<Object> usual = binary(schema, schema, bytes(question, "usual"), count);
        Decoder json = DecoderFactory.get().jsonDecoder(schema, question.get("json").asText());
        same(schema, read(schema, schema, json, count), usual, "JSON");
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, text);
        write(schema, usual, encoder);
        answer.put("json", text.toString("UTF-8"));
        return answer;
    }

    /** A value by another schema than it was written by; nothing, if it cannot be read. */
    private static ObjectNode resolved(JsonNode question) throws IOException {
        Schema writer = schema(question, "writer");
        Schema reader = schema(question, "reader");
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.put("plain", HEX.formatHex(binary(reader, binary(writer, reader, bytes(question, "payload"), 1))));
        } catch (AvroTypeException error) {
            answer.put("error", error.getMessage());
        }
        return answer;
    }

    private static List<Object> binary(Schema writer, Schema reader, byte[] payload, int count) throws IOException {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(payload, null);
        List<Object> values = read(writer, reader, decoder, count);
        if (!decoder.isEnd()) {
            throw new IOException("bytes are left over");
        }
        return values;
    }

    private static List<Object> read(Schema writer, Schema reader, Decoder decoder, int count) throws IOException {
        GenericDatumReader<Object> values = new GenericDatumReader<>(writer, reader);
        List<Object> found = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            found.add(values.read(null, decoder));
        }
        return found;
    }

    private static byte[] binary(Schema schema, List<Object> values) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        write(schema, values, encoder);
        return out.toByteArray();
    }

    private static void write(Schema schema, List<Object> values, org.apache.avro.io.Encoder encoder) throws IOException {
        GenericDatumWriter<Object> writer = new GenericDatumWriter<>(schema);
        for (Object value : values) {
            writer.write(value, encoder);
        }
        encoder.flush();
    }

    /** Whether both are written as the same bytes: maps of the same entries, made in the same order, are. */
    private static void same(Schema schema, List<Object> one, List<Object> other, String what) throws IOException {
        if (!Arrays.equals(binary(schema, one), binary(schema, other))) {
            throw new IOException(what + ": other values");
        }
    }
}
