package sparkherd.iceberg;

import java.io.Closeable;
import java.io.IOException;
import java.lang.reflect.Field;
import org.apache.iceberg.CachingCatalog;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The catalogs of a session: each session has its own, with its own connections, and nothing of Spark's closes them. */
public final class Catalogs {
    private Catalogs() {
    }

    /** For a session that nothing reads or writes with any more. */
    public static void close(SparkSession spark) throws IOException, ReflectiveOperationException {
        CatalogManager loaded =
                ((org.apache.spark.sql.classic.SparkSession) spark).sessionState().catalogManager();
        for (String name : CollectionConverters.asJava(loaded.listCatalogs(Option.empty()))) {
            if (loaded.catalog(name) instanceof HasIcebergCatalog found
                    && inside(found.icebergCatalog()) instanceof Closeable open) {
                open.close();
            }
        }
    }

    private static Catalog inside(Catalog catalog) throws ReflectiveOperationException {
        if (!(catalog instanceof CachingCatalog)) {
            return catalog;
        }
        Field inner = CachingCatalog.class.getDeclaredField("catalog");
        inner.setAccessible(true);
        return (Catalog) inner.get(catalog);
    }
}
