package sparkherd.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.catalyst.util.BadRecordException;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterable;
import scala.collection.immutable.Map;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Takes texts apart that are one object of JSON each, by Spark's own parser.
 *
 * Spark's `from_json` stops behind the first object of a text and does not say what else there is, and it has
 * Jackson read characters, for which it sets up a decoder for each text; from bytes, as Spark's reader of files
 * has it, that takes half of the time.
 */
public final class ObjectReader implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int BOOTSTRAPPED = 4;

    private final StructType schema;
    private final Map<String, String> options;
    private final String zone;
    private final String corrupt;
    private transient JacksonParser parser;
    private transient WholeObject whole;

    public ObjectReader(StructType schema, Map<String, String> options, String zone, String corrupt) {
        this.schema = schema;
        this.options = options;
        this.zone = zone;
        this.corrupt = corrupt;
    }

    /** The object's fields; null if the text is no UTF-8, not one object, or not of the schema. */
    public InternalRow read(UTF8String text) {
        if (!text.isValid()) {
            return null;
        }
        try {
            return whole(parser().parse(text, this::opened, each -> each));
        } catch (Exception error) {
            return whole(error);
        }
    }

    private InternalRow whole(Iterable<InternalRow> rows) {
        return whole.isWhole() && rows.nonEmpty() ? rows.head() : null;
    }

    /** Scala declares no exceptions, so Java's compiler does not let this one be caught by its name. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> InternalRow whole(Exception error) throws E {
        if (error instanceof BadRecordException) {
            return null;
        }
        throw (E) error;
    }

    private JacksonParser parser() {
        if (parser == null) {
            JSONOptions told = new JSONOptions(options, zone, corrupt);
            parser = new JacksonParser(schema, told, false, nothing());
        }
        return parser;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Seq<Filter> nothing() {
        return (Seq) Nil$.MODULE$;
    }

    private JsonParser opened(JsonFactory factory, UTF8String text) {
        ByteBuffer bytes = text.getByteBuffer();
        int start = bytes.arrayOffset() + bytes.position();
        try {
            whole = new WholeObject(opened(factory, bytes.array(), start, bytes.remaining()));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return whole;
    }

    private static JsonParser opened(JsonFactory factory, byte[] bytes, int start, int length) throws IOException {
        if (!mayBeTakenForOther(bytes, start, length)) {
            return factory.createParser(bytes, start, length);
        }
        ByteArrayInputStream stream = new ByteArrayInputStream(bytes, start, length);
        return factory.createParser(new InputStreamReader(stream, StandardCharsets.UTF_8));
    }

    /** By its first bytes, Jackson might take a text for one in another encoding, or pass over a mark of UTF-8. */
    private static boolean mayBeTakenForOther(byte[] bytes, int start, int length) {
        int most = Math.min(length, BOOTSTRAPPED);
        for (int at = 0; at < most; at++) {
            if (bytes[start + at] == 0) {
                return true;
            }
        }
        return length > 0 && bytes[start] == (byte) 0xEF;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ObjectReader && key().equals(((ObjectReader) other).key());
    }

    @Override
    public int hashCode() {
        return key().hashCode();
    }

    /** As `from_json` is shown in a plan: names of columns, and no options. */
    @Override
    public String toString() {
        return "sparkherd_json(" + schema.catalogString() + ")";
    }

    private List<Object> key() {
        return Arrays.asList(schema, options, zone, corrupt);
    }
}
