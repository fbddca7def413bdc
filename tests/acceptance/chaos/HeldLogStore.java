package sparkherd.chaos;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import sparkherd.delta.LinkLogStore;

/**
 * The log store that the fenced sink asks for, with two places where the stage can hold a commit: when all of its
 * files are written and it has no log entry, and when it has one and nobody was told. What is to be held is the
 * name of a file in a folder of the worker's own; it is held as long as that file is there.
 */
public class HeldLogStore extends LinkLogStore {
    private final String holds;

    public HeldLogStore(Configuration conf) {
        super(conf);
        holds = conf.get("sparkherd.chaos.holds");
    }

    @Override
    public void write(Path path, Iterator actions, Boolean overwrite, Configuration conf) throws IOException {
        List lines = new ArrayList();
        String work = "batch";
        while (actions.hasNext()) {
            String line = (String) actions.next();
            lines.add(line);
            if (line.contains("SPARKHERD CLAIM")) {
                work = "claim";
            } else if (work.equals("batch") && line.contains("~replay\"")) {
                work = "replay";
            }
        }
        String of = path.getParent().getParent().getName() + "-" + work;
        boolean held = hold(of + "-written");
        String outcome = "refused";
        try {
            super.write(path, lines.iterator(), overwrite, conf);
            outcome = "made";
        } finally {
            if (held) {
                tell(of + "-written-over", outcome);
            }
        }
        if (hold(of + "-committing")) {
            tell(of + "-committing-over", outcome);
        }
    }

    /** Whoever is stopped meanwhile notices it when this is over, as at any other place where it does not wait. */
    private boolean hold(String name) throws IOException {
        File asked = new File(holds, name);
        if (!asked.exists()) {
            return false;
        }
        tell(name + "-reached", "");
        boolean interrupted = false;
        while (asked.exists()) {
            try {
                Thread.sleep(10L);
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return true;
    }

    private void tell(String name, String what) throws IOException {
        PrintWriter told = new PrintWriter(new File(holds, name));
        told.print(what);
        told.close();
    }
}
