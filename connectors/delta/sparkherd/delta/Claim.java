package sparkherd.delta;

import org.apache.spark.sql.delta.DeltaOperations;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/** What a table's history calls a commit that has no rows but moves a fence. */
final class Claim extends DeltaOperations.Operation {
    private final String note;
    private final boolean defines;

    Claim(String note, boolean defines) {
        super("SPARKHERD CLAIM");
        this.note = note;
        this.defines = defines;
    }

    @Override
    public Map<String, Object> parameters() {
        return Map$.MODULE$.empty();
    }

    @Override
    public Option<String> userMetadata() {
        return Option.apply(note);
    }

    @Override
    public boolean changesData() {
        return false;
    }

    @Override
    public boolean checkAddFileWithDeletionVectorStatsAreNotTightBounds() {
        return false;
    }

    @Override
    public Option<Object> isInPlaceFileMetadataUpdate() {
        return Option.empty();
    }

    @Override
    public boolean canChangePartitionColumns() {
        return defines;
    }
}
