package sparkherd.tests;

import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Iceberg's REST catalog over one by JDBC, at a port of 127.0.0.1, which it prints. It ends with its input. */
public class RestCatalog {
    public static void main(String[] given) throws Exception {
        Map<String, String> settings = new HashMap<String, String>();
        settings.put("uri", given[0]);
        settings.put("warehouse", given[1]);
        settings.put("jdbc.schema-version", "V1");
        JdbcCatalog tables = new JdbcCatalog();
        tables.setConf(new Configuration());
        tables.initialize("tables", settings);

        ServletContextHandler paths = new ServletContextHandler();
        paths.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(tables))), "/*");
        Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
        server.setHandler(paths);
        server.start();
        System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
        System.in.read();
        server.stop();
    }
}
