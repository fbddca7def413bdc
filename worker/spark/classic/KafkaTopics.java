import java.net.URLEncoder;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;

/**
 * What is done with many topics and partitions at once. Texts go in and out, a line for each of them: a call
 * from Python for each would take seconds. Compiled by Spark's own compiler, which knows no generics.
 */
public class KafkaTopics {

    /**
     * The names in which a pattern finds something, as Spark looks for them. After too many steps a question
     * mark, with the name that took more than one may, or alone if all together did: no name has one.
     */
    public String matching(Collection names, String pattern, long stepsEach, long stepsInAll) {
        Pattern compiled = Pattern.compile(pattern);
        long left = stepsInAll;
        StringBuilder found = new StringBuilder();
        for (Iterator each = names.iterator(); each.hasNext();) {
            String name = (String) each.next();
            long[] steps = new long[] {Math.min(stepsEach, left)};
            try {
                left -= steps[0];
                if (compiled.matcher(new Counted(name, steps)).find()) {
                    found.append(name).append('\n');
                }
                left += steps[0];
            } catch (TooManySteps gone) {
                return left > 0 ? "?" + name : "?";
            }
        }
        return found.toString();
    }

    /** Those of the lines that are among the names. */
    public Collection named(Collection names, String lines) {
        Collection found = new HashSet(Arrays.asList(lines.split("\n")));
        found.retainAll(names);
        return found;
    }

    /** A line for each topic: its name, its id, how many partitions it has, and which of them have no leader. */
    public String described(Map topics) {
        StringBuilder lines = new StringBuilder();
        for (Iterator each = topics.values().iterator(); each.hasNext();) {
            TopicDescription topic = (TopicDescription) each.next();
            lines.append(topic.name()).append(' ').append(topic.topicId());
            lines.append(' ').append(topic.partitions().size());
            for (Iterator every = topic.partitions().iterator(); every.hasNext();) {
                TopicPartitionInfo partition = (TopicPartitionInfo) every.next();
                if (partition.leader() == null || partition.leader().isEmpty()) {
                    lines.append(' ').append(partition.partition());
                }
            }
            lines.append('\n');
        }
        return lines.toString();
    }

    /** What is asked of partitions, given as lines of a topic's name and a partition's number. */
    public Map wanted(String partitions, OffsetSpec spec) {
        Map asked = new HashMap();
        String[] lines = partitions.split("\n");
        for (int i = 0; i < lines.length; i++) {
            int space = lines[i].indexOf(' ');
            if (space > 0) {
                int number = Integer.parseInt(lines[i].substring(space + 1));
                asked.put(new TopicPartition(lines[i].substring(0, space), number), spec);
            }
        }
        return asked;
    }

    /** A line for each partition that brokers have told of: its topic's name, its number, and its offset. */
    public String offsets(ListOffsetsResult told, Map wanted) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (Iterator each = wanted.keySet().iterator(); each.hasNext();) {
            TopicPartition place = (TopicPartition) each.next();
            KafkaFuture future = told.partitionResult(place);
            if (future.isDone() && !future.isCompletedExceptionally()) {
                long offset = ((ListOffsetsResult.ListOffsetsResultInfo) future.get()).offset();
                lines.append(place.topic()).append(' ').append(place.partition());
                lines.append(' ').append(offset).append('\n');
            }
        }
        return lines.toString();
    }

    /** What is to be written to a group, given as lines of a topic's name, a partition's number and an offset. */
    public Map commits(String positions, String metadata) {
        Map offsets = positions(positions.split("\n"));
        for (Iterator each = offsets.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            entry.setValue(new OffsetAndMetadata(((Long) entry.getValue()).longValue(), metadata));
        }
        return offsets;
    }

    /**
     * A line for each partition that has an offset in a group: its topic's name, its number, and what stands
     * beside the offset, which may be any text and is written as in a URL.
     */
    public String metadata(Map committed) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (Iterator each = committed.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            if (entry.getValue() != null) {
                TopicPartition place = (TopicPartition) entry.getKey();
                String text = ((OffsetAndMetadata) entry.getValue()).metadata();
                lines.append(place.topic()).append(' ').append(place.partition());
                lines.append(' ').append(URLEncoder.encode(text, "UTF-8")).append('\n');
            }
        }
        return lines.toString();
    }

    /**
     * How often brokers were asked; then a line for each partition that has shown its first row: its topic's
     * name, its number, and that row's time. Given are lines with the offset that each is read from.
     */
    public String firstTimes(Map settings, String positions, long pollMs, long limitMs) {
        KafkaConsumer consumer = new KafkaConsumer(settings);
        try {
            Set left = seek(consumer, positions.split("\n"));
            int most = left.size() + 1;
            long until = System.nanoTime() + limitMs * 1000000L;
            StringBuilder lines = new StringBuilder();
            int polls = 0;
            boolean goesOn = true;
            while (goesOn) {
                ConsumerRecords found = consumer.poll(Duration.ofMillis(pollMs));
                polls++;
                consumer.pause(shown(found, left, lines));
                goesOn = !found.isEmpty() && !left.isEmpty() && polls < most && System.nanoTime() < until;
            }
            return polls + "\n" + lines;
        } finally {
            consumer.close(Duration.ofMillis(0L));
        }
    }

    private static Map positions(String[] lines) {
        Map offsets = new HashMap();
        for (int i = 0; i < lines.length; i++) {
            String[] parts = lines[i].split(" ");
            offsets.put(new TopicPartition(parts[0], Integer.parseInt(parts[1])), Long.valueOf(parts[2]));
        }
        return offsets;
    }

    private static Set seek(KafkaConsumer consumer, String[] lines) {
        Map offsets = positions(lines);
        consumer.assign(offsets.keySet());
        for (Iterator each = offsets.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            consumer.seek((TopicPartition) entry.getKey(), ((Long) entry.getValue()).longValue());
        }
        return new HashSet(offsets.keySet());
    }

    /** The partitions that have shown their first row now; each is taken out of those that are left. */
    private static Set shown(ConsumerRecords found, Set left, StringBuilder lines) {
        Set shown = new HashSet();
        for (Iterator each = found.iterator(); each.hasNext();) {
            ConsumerRecord row = (ConsumerRecord) each.next();
            TopicPartition place = new TopicPartition(row.topic(), row.partition());
            if (left.remove(place)) {
                shown.add(place);
                lines.append(row.topic()).append(' ').append(row.partition());
                lines.append(' ').append(row.timestamp()).append('\n');
            }
        }
        return shown;
    }

    private static class TooManySteps extends RuntimeException {
    }

    /** A text that counts how often a character of it is looked at: Java ends no search by itself. */
    private static class Counted implements CharSequence {
        private final CharSequence text;
        private final long[] left;

        Counted(CharSequence text, long[] left) {
            this.text = text;
            this.left = left;
        }

        public char charAt(int index) {
            if (--left[0] < 0) {
                throw new TooManySteps();
            }
            return text.charAt(index);
        }

        public int length() {
            return text.length();
        }

        public CharSequence subSequence(int start, int end) {
            return new Counted(text.subSequence(start, end), left);
        }

        public String toString() {
            return text.toString();
        }
    }
}
