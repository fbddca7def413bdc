package sparkherd.iceberg;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Asks about the fence in a table of Iceberg's, or raises it, by reading: a DataFrame goes through Spark Connect, too,
 * and one question is cheaper than several tables of metadata. The option `request` is what `Fence.answer` takes, and the one
 * value of the one row what it gives. It is asked when the rows are wanted, at the driver, without a job.
 */
public class FenceSource implements TableProvider, DataSourceRegister {
    private static final StructType ANSWER = new StructType().add("answer", DataTypes.StringType, false);

    /** The same without a DataFrame, for a driver in this JVM: it spares Spark's planning. */
    public static String answer(SparkSession spark, String request) {
        return spark.withActive(() -> Fence.answer(spark, request));
    }

    @Override
    public String shortName() {
        return "sparkherd_iceberg_fence";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return ANSWER;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new Asked();
    }

    private static class Asked implements Table, SupportsRead {
        @Override
        public String name() {
            return "sparkherd_iceberg_fence";
        }

        @Override
        @SuppressWarnings("deprecation") // what takes its place is built from this by itself
        public StructType schema() {
            return ANSWER;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return Set.of(TableCapability.BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            String request = options.get("request");
            return () -> new Answer(request);
        }
    }

    private static class Answer implements LocalScan {
        private final String request;
        private InternalRow[] rows;

        Answer(String request) {
            this.request = request;
        }

        @Override
        public StructType readSchema() {
            return ANSWER;
        }

        /** Once, however often Spark plans. */
        @Override
        public synchronized InternalRow[] rows() {
            if (rows == null) {
                String answer = FenceSource.answer(SparkSession.active(), request);
                rows = new InternalRow[] {new GenericInternalRow(new Object[] {UTF8String.fromString(answer)})};
            }
            return rows;
        }
    }
}
