package sparkherd.iceberg;

import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;

/** Tables of a session's catalogs, by their quoted names. */
final class Tables {
    private static final String HADOOP = "org.apache.iceberg.hadoop.HadoopTableOperations";
    private static final String HIVE = "org.apache.iceberg.hive.HiveTableOperations";
    private static final String HIVE_LOCKS = "engine.hive.lock-enabled";

    private Tables() {
    }

    static Table load(SparkSession spark, String name) {
        try {
            Table table = Spark3Util.loadIcebergTable(spark, name);
            if (!(table instanceof HasTableOperations)) {
                throw new IllegalArgumentException(name + " is no table but what Iceberg tells of one: it takes no rows");
            }
            requireCompareAndSwap(name, ((HasTableOperations) table).operations());
            return table;
        } catch (ParseException error) {
            throw new IllegalArgumentException(error);
        } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException error) {
            throw new org.apache.iceberg.exceptions.NoSuchTableException(error, "There is no table %s", name);
        }
    }

    /**
     * Refuses tables that two writers can both be told to have committed to, whatever catalog has led to them: one at a
     * path is committed by renaming, in each catalog. A Hive table's own property goes before the catalog's setting.
     */
    private static void requireCompareAndSwap(String name, TableOperations operations) {
        String kind = operations.getClass().getName();
        Map<String, String> properties = operations.current().properties();
        if (kind.equals(HADOOP)) {
            throw new IllegalArgumentException(name + " is committed by renaming a file, which two writers can both be told"
                    + " has worked: name a table of a catalog whose commit compares and swaps, such as jdbc or rest");
        }
        if (kind.equals(HIVE) && Boolean.parseBoolean(properties.get(HIVE_LOCKS))) {
            throw new IllegalArgumentException(name + " has " + HIVE_LOCKS + " = true: with locks the metastore does not"
                    + " compare what it replaces: ALTER TABLE ... UNSET TBLPROPERTIES ('" + HIVE_LOCKS + "')");
        }
    }

    /** The same table, whose commits come about at that place only; fails if its head is another one by now. */
    static Table fenced(Table table, Place place) {
        TableOperations operations = ((HasTableOperations) table).operations();
        FencedOperations fenced = new FencedOperations(operations, place);
        if (!fenced.isAtHead(operations.current())) {
            fenced.requireHead(operations.refresh()); // what is kept of a table may be of before
        }
        return new BaseTable(fenced, table.name());
    }
}
