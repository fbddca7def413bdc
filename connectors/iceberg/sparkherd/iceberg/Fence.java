package sparkherd.iceberg;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.Table;
import org.apache.spark.sql.SparkSession;

/**
 * What a table's branch says of a task, and a commit without rows. What it means is for whoever asks to say
 * (worker/sinks/iceberg).
 *
 * A request is JSON: `table`, its quoted name, `branch`, `tag`, and `key`, the property of a summary that marks are in.
 * With `mark`, an empty snapshot with that mark is committed right after `head`. The answer has the `head` of the branch
 * (none if it has no snapshot), `has_branch`, the newest mark among the ancestors of the head as `found`, whether these are
 * all there (`is_whole`), and the mark of the snapshot that is `tagged`.
 */
final class Fence {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Fence() {
    }

    static String answer(SparkSession spark, String text) {
        try {
            JsonNode request = JSON.readTree(text);
            Table table = Tables.load(spark, request.get("table").asText());
            table.refresh();
            if (request.has("mark")) {
                claim(table, request);
            }
            return seen(table, request).toString();
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static void claim(Table table, JsonNode request) {
        String branch = request.get("branch").asText();
        Place place = new Place(request.get("head").asText(), branch, request.get("tag").asText());
        AppendFiles nothing = Tables.fenced(table, place).newFastAppend();
        nothing.toBranch(branch);
        nothing.set(request.get("key").asText(), request.get("mark").asText());
        nothing.commit();
    }

    private static ObjectNode seen(Table table, JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        String key = request.get("key").asText();
        SnapshotRef head = table.refs().get(request.get("branch").asText());
        answer.put("has_branch", head != null);
        answer.put("head", head == null ? Place.NONE : Long.toString(head.snapshotId()));
        Long at = head == null ? null : head.snapshotId();
        Snapshot snapshot = at == null ? null : table.snapshot(at);
        while (snapshot != null && !snapshot.summary().containsKey(key)) {
            at = snapshot.parentId();
            snapshot = at == null ? null : table.snapshot(at);
        }
        mark(answer, "found", snapshot, key);
        answer.put("is_whole", at == null);
        SnapshotRef tag = table.refs().get(request.get("tag").asText());
        mark(answer, "tagged", tag == null ? null : table.snapshot(tag.snapshotId()), key);
        return answer;
    }

    private static void mark(ObjectNode answer, String name, Snapshot snapshot, String key) {
        if (snapshot == null || !snapshot.summary().containsKey(key)) {
            answer.putNull(name);
            return;
        }
        String added = snapshot.summary().getOrDefault("added-records", "0");
        answer.putObject(name).put("mark", snapshot.summary().get(key)).put("added", Long.parseLong(added));
    }
}
