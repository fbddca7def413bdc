package sparkherd.iceberg;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.spark.functions.SparkFunctions;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The tables of other catalogs as a fenced sink writes to them: `THIS.CATALOG.NAMESPACE.TABLE.PLACE` is the table
 * with commits at that `Place` only. Whatever Spark can do to a table, MERGE included, is one commit there.
 */
public class FencedCatalog implements TableCatalog, FunctionCatalog {
    private String name;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Table loadTable(Identifier named) throws NoSuchTableException {
        Place place = Place.of(named.name());
        String table = Arrays.stream(named.namespace()).map(FencedCatalog::quoted).collect(Collectors.joining("."));
        String branch = place.branch().equals(SnapshotRef.MAIN_BRANCH) ? null : place.branch();
        return SparkTable.create(Tables.fenced(Tables.load(SparkSession.active(), table), place), branch);
    }

    /** Those that tables are partitioned by: rows are laid apart before they are written. */
    @Override
    public UnboundFunction loadFunction(Identifier named) throws NoSuchFunctionException {
        UnboundFunction found = named.namespace().length == 0 ? SparkFunctions.load(named.name()) : null;
        if (found == null) {
            throw new NoSuchFunctionException(named);
        }
        return found;
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    private static String quoted(String part) {
        return "`" + part.replace("`", "``") + "`";
    }

    @Override
    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public Table createTable(Identifier named, TableInfo info) {
        throw new UnsupportedOperationException("no tables are made here");
    }

    @Override
    public Table alterTable(Identifier named, TableChange... changes) {
        throw new UnsupportedOperationException("no tables are changed here");
    }

    @Override
    public boolean dropTable(Identifier named) {
        return false;
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("no tables are renamed here");
    }
}
