package sparkherd.iceberg;

import org.apache.iceberg.BaseTable;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;

/** Tables of a session's catalogs, by their quoted names. */
final class Tables {
    private Tables() {
    }

    static Table load(SparkSession spark, String name) {
        try {
            Table table = Spark3Util.loadIcebergTable(spark, name);
            if (!(table instanceof HasTableOperations)) {
                throw new IllegalArgumentException(name + " is no table but what Iceberg tells of one: it takes no rows");
            }
            return table;
        } catch (ParseException error) {
            throw new IllegalArgumentException(error);
        } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException error) {
            throw new org.apache.iceberg.exceptions.NoSuchTableException(error, "There is no table %s", name);
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
