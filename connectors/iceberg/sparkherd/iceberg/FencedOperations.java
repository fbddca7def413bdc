package sparkherd.iceberg;

import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * A table's commits, of which only one that directly follows a given head of a branch comes about.
 *
 * The catalog compares what a commit is based on with what is there, and here the head of that base is compared
 * with the given one: in each of the attempts that Iceberg makes at a commit, not once before them. The same
 * commit moves the tag, so that what is published outlives its expiry.
 */
final class FencedOperations implements TableOperations {
    private final TableOperations table;
    private final Place place;
    private Long tried;

    FencedOperations(TableOperations table, Place place) {
        this.table = table;
        this.place = place;
    }

    @Override
    public void commit(TableMetadata base, TableMetadata updated) {
        requireHead(base);
        SnapshotRef head = updated.ref(place.branch());
        if (head == null || !parentOf(updated.snapshot(head.snapshotId())).equals(place.head())) {
            throw new ValidationException(
                    "A commit to branch %s would not follow its head: on a table with write.wap.enabled the settings"
                            + " spark.wap.id and spark.wap.branch put rows elsewhere, leave them out",
                    place);
        }
        SnapshotRef tag = SnapshotRef.tagBuilder(head.snapshotId()).maxRefAgeMs(Long.MAX_VALUE).build();
        tried = head.snapshotId();
        try {
            table.commit(base, TableMetadata.buildFrom(updated).setRef(place.tag(), tag).build());
        } catch (CommitFailedException told) {
            requireUndone(told); // there may be no other attempt that would look
            throw told;
        }
        tried = null; // it was done, and told so
    }

    /** Fails otherwise than the commit has if that was done all the same, or if nobody can say. */
    private void requireUndone(CommitFailedException told) {
        try {
            refresh();
        } catch (CommitStateUnknownException done) {
            throw done;
        } catch (RuntimeException error) {
            told.addSuppressed(error);
            throw new CommitStateUnknownException(told);
        }
    }

    /** Fails, for good, if the branch's head is another one than it was when the fence was read. */
    void requireHead(TableMetadata base) {
        if (!isAtHead(base)) {
            throw new ValidationException("The head of branch %s has moved", place);
        }
    }

    boolean isAtHead(TableMetadata base) {
        SnapshotRef head = base.ref(place.branch());
        return textOf(head == null ? null : head.snapshotId()).equals(place.head());
    }

    private static String parentOf(Snapshot snapshot) {
        return textOf(snapshot.parentId());
    }

    private static String textOf(Long snapshot) {
        return snapshot == null ? Place.NONE : snapshot.toString();
    }

    @Override
    public TableMetadata current() {
        return table.current();
    }

    /**
     * The table as it is; every attempt at a commit begins with it.
     *
     * A catalog may have done what it says it has not. For a commit that fails Iceberg and Spark clear away the files,
     * which are the table's by then; for one of which nobody knows whether it was done they leave them.
     */
    @Override
    public TableMetadata refresh() {
        TableMetadata found = table.refresh();
        if (tried != null && found.snapshot(tried) != null) {
            throw new CommitStateUnknownException(new IllegalStateException("it was done, and told to have failed"));
        }
        return found;
    }

    @Override
    public FileIO io() {
        return table.io();
    }

    @Override
    public EncryptionManager encryption() {
        return table.encryption();
    }

    @Override
    public String metadataFileLocation(String fileName) {
        return table.metadataFileLocation(fileName);
    }

    @Override
    public LocationProvider locationProvider() {
        return table.locationProvider();
    }

    @Override
    public TableOperations temp(TableMetadata uncommitted) {
        return table.temp(uncommitted);
    }

    @Override
    public long newSnapshotId() {
        return table.newSnapshotId();
    }

    @Override
    public boolean requireStrictCleanup() {
        return table.requireStrictCleanup();
    }
}
