package sparkherd.delta;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.exceptions.DeltaConcurrentModificationException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.TableFeature;
import org.apache.spark.sql.delta.actions.Action;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.actions.Protocol;
import org.apache.spark.sql.delta.storage.DelegatingLogStore;
import org.apache.spark.sql.delta.storage.LogStore;
import org.apache.spark.sql.delta.storage.LogStoreAdaptor;
import org.apache.spark.sql.delta.util.FileNames;
import scala.Option;
import scala.collection.Iterable;
import scala.collection.immutable.Seq;
import scala.collection.mutable.ListBuffer;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The transaction ids of a Delta table: what they are, and one step that changes them if they are as expected.
 * Which numbers are right is for whoever asks to say (worker/sinks/delta).
 *
 * A request is JSON: `path` of a table, or `table`, its name; `app`, the id to look for, those that begin with it
 * and a `#` included; `depth`, in how many of the newest commits to look for the one that has set it last. With
 * `expect`, the version that `app` has to have (-1: none), the versions in `set` are committed with `note` as
 * their userMetadata, and with `columns` (Spark's schema in JSON) and `partition_by` the columns of a table that
 * has none yet.
 */
final class Fence {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final SparkSession spark;

    Fence(SparkSession spark) {
        this.spark = spark;
    }

    String answer(String text) {
        try {
            JsonNode request = JSON.readTree(text);
            ObjectNode answer = JSON.createObjectNode();
            Place place = place(request);
            if (place == null) {
                return answer.put("version", -1).toString();
            }
            answer.put("committed", request.has("expect") && committed(place, request));
            Snapshot snapshot = place.snapshot();
            answer.put("path", place.log.dataPath().toString()).put("log_store", storeOf(place.log));
            answer.put("version", snapshot.version());
            if (snapshot.version() < 0) {
                return answer.toString();
            }
            describe(answer, snapshot);
            String app = request.get("app").asText();
            Long stored = versions(answer.putObject("versions"), snapshot, app);
            if (stored != null) {
                note(answer, place.log, snapshot.version(), app, stored, request.path("depth").asInt(0));
            }
            return answer.toString();
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** Null for a name that no table has. */
    private Place place(JsonNode request) {
        if (request.has("path")) {
            return new Place(new Path(request.get("path").asText()));
        }
        try {
            String name = request.get("table").asText();
            TableIdentifier parsed = classic().sessionState().sqlParser().parseTableIdentifier(name);
            return new Place(classic().sessionState().catalog().getTableMetadata(parsed));
        } catch (NoSuchNamespaceException | NoSuchTableException none) {
            return null;
        } catch (ParseException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private org.apache.spark.sql.classic.SparkSession classic() {
        return (org.apache.spark.sql.classic.SparkSession) spark;
    }

    /** Whether `app` had the version that is expected, and has what is set now; the step that decides. */
    private boolean committed(Place place, JsonNode request) throws JsonProcessingException {
        OptimisticTransaction transaction = place.log.startTransaction(place.table, Option.empty());
        if (transaction.txnVersion(request.get("app").asText()) != request.get("expect").asLong()) {
            return false;
        }
        if (request.has("columns")) {
            define(transaction, request);
        }
        Option<Object> now = Option.apply((Object) System.currentTimeMillis());
        for (Map.Entry<String, JsonNode> entry : request.get("set").properties()) {
            transaction.updateSetTransaction(entry.getKey(), entry.getValue().asLong(), now);
        }
        try {
            List<Action> nothing = List.of();
            transaction.commit(seq(nothing), new Claim(request.path("note").asText(null), request.has("columns")));
            return true;
        } catch (DeltaConcurrentModificationException lost) {
            return false;
        }
    }

    /** Types may need features, which Delta adds by itself only to a table that is made in the same step. */
    private void define(OptimisticTransaction transaction, JsonNode request) {
        Metadata is = transaction.metadata();
        List<String> by = new ArrayList<>();
        request.path("partition_by").forEach(name -> by.add(name.asText()));
        Metadata defined = new Metadata(is.id(), is.name(), is.description(), is.format(),
                request.get("columns").toString(), seq(by), is.configuration(), is.createdTime());
        Protocol protocol = transaction.protocol();
        Iterable<TableFeature> needed = Protocol.extractAutomaticallyEnabledFeatures(spark, defined, protocol);
        for (TableFeature feature : CollectionConverters.asJava(needed)) {
            protocol = protocol.merge(seq(List.of(Protocol.forTableFeature(feature))));
        }
        if (!protocol.equals(transaction.protocol())) {
            transaction.updateProtocol(protocol);
        }
        transaction.updateMetadata(defined, false);
    }

    private static <T> Seq<T> seq(List<T> items) {
        return new ListBuffer<T>().addAll(CollectionConverters.asScala(items)).toList();
    }

    private static void describe(ObjectNode answer, Snapshot snapshot) throws JsonProcessingException {
        Metadata metadata = snapshot.metadata();
        answer.put("id", metadata.id());
        String columns = metadata.schemaString();
        answer.set("columns", columns == null || columns.isEmpty() ? null : JSON.readTree(columns));
        strings(answer.putArray("partition_by"), metadata.partitionColumns());
        ObjectNode settings = answer.putObject("configuration");
        CollectionConverters.asJava(metadata.configuration()).forEach(settings::put);
        strings(answer.putArray("features"), snapshot.protocol().readerAndWriterFeatureNames());
    }

    private static void strings(ArrayNode into, Iterable<String> names) {
        CollectionConverters.asJava(names).forEach(into::add);
    }

    private static String storeOf(DeltaLog log) {
        LogStore store = log.store();
        if (store instanceof DelegatingLogStore delegating) {
            store = delegating.getDelegate(log.logPath());
        }
        if (store instanceof LogStoreAdaptor adaptor) {
            return adaptor.logStoreImpl().getClass().getName();
        }
        return store.getClass().getName();
    }

    private static Long versions(ObjectNode into, Snapshot snapshot, String app) {
        Map<String, Object> all = CollectionConverters.asJava(snapshot.transactions());
        for (Map.Entry<String, Object> entry : all.entrySet()) {
            if (entry.getKey().equals(app) || entry.getKey().startsWith(app + "#")) {
                into.put(entry.getKey(), ((Number) entry.getValue()).longValue());
            }
        }
        return (Long) all.get(app);
    }

    /** What stands beside the version in the commit that has set it, as long as that is to be had. */
    private static void note(ObjectNode answer, DeltaLog log, long newest, String app, long version, int depth)
            throws JsonProcessingException {
        for (long at = newest; at > newest - depth && at >= 0; at--) {
            Path file = FileNames.unsafeDeltaFile(log.logPath(), at);
            if (!isThere(file, log)) {
                return;
            }
            JsonNode info = null;
            boolean isIt = false;
            for (String line : CollectionConverters.asJava(log.store().read(file, log.newDeltaHadoopConf()))) {
                if (line.startsWith("{\"txn\"")) {
                    JsonNode txn = JSON.readTree(line).get("txn");
                    isIt |= app.equals(txn.path("appId").asText()) && txn.path("version").asLong() == version;
                } else if (line.startsWith("{\"commitInfo\"")) {
                    info = JSON.readTree(line).get("commitInfo");
                }
            }
            if (isIt && info != null) {
                answer.set("note", info.get("userMetadata"));
                answer.set("metrics", info.get("operationMetrics"));
                return;
            }
        }
    }

    private static boolean isThere(Path file, DeltaLog log) {
        try {
            return file.getFileSystem(log.newDeltaHadoopConf()).exists(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A table, at a path or of the session's catalog. */
    private final class Place {
        private final DeltaLog log;
        private final Option<CatalogTable> table;

        Place(Path path) {
            table = Option.empty();
            log = DeltaLog.forTable(spark, path);
        }

        Place(CatalogTable named) {
            table = Option.apply(named);
            log = DeltaLog.forTable(spark, named);
        }

        Snapshot snapshot() {
            return log.update(false, Option.empty(), table);
        }
    }
}
