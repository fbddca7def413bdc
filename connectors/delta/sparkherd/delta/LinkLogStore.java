package sparkherd.delta;

import io.delta.storage.HDFSLogStore;
import java.io.BufferedWriter;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * The log of Delta tables on disks of this machine and on NFS, for `spark.delta.logStore.file.impl`.
 *
 * Delta's own looks whether a commit is there and then renames its file into that place, which replaces whatever
 * has come there meanwhile: of two drivers, or of one that was frozen between the two steps, both are told that
 * they have committed the version. A link is refused where the name is taken, in one step that a local file
 * system and the server of NFS decide. All drivers that write to a table have to use this.
 */
public class LinkLogStore extends HDFSLogStore {
    public LinkLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
            throws IOException {
        if (overwrite) {
            super.write(path, actions, true, conf);
            return;
        }
        java.nio.file.Path file = new File(path.toUri().getPath()).toPath();
        java.nio.file.Path draft = file.resolveSibling("." + file.getFileName() + "." + UUID.randomUUID() + ".tmp");
        try {
            put(draft, actions);
            link(draft, file);
        } finally {
            Files.deleteIfExists(draft);
        }
        sync(file.getParent());
    }

    private static void put(java.nio.file.Path draft, Iterator<String> actions) throws IOException {
        try (FileOutputStream stream = new FileOutputStream(draft.toFile());
                BufferedWriter text = new BufferedWriter(new OutputStreamWriter(stream, StandardCharsets.UTF_8))) {
            while (actions.hasNext()) {
                text.write(actions.next());
                text.write('\n');
            }
            text.flush();
            stream.getFD().sync();
        }
    }

    /** A client of NFS that asks again because an answer was lost is told that its own link is in the way. */
    private static void link(java.nio.file.Path draft, java.nio.file.Path file) throws IOException {
        try {
            Files.createLink(file, draft);
        } catch (FileAlreadyExistsException taken) {
            Object links = Files.getAttribute(draft, "unix:nlink");
            if (((Number) links).intValue() < 2) {
                throw taken;
            }
        } catch (UnsupportedOperationException none) {
            FileStore where = Files.getFileStore(draft);
            throw new IOException(file + ": the file system " + where.type() + " has no links", none);
        }
    }

    /** So that the name outlives the machine's power, as what is in the file does. */
    private static void sync(java.nio.file.Path folder) throws IOException {
        try (FileChannel names = FileChannel.open(folder, StandardOpenOption.READ)) {
            names.force(true);
        }
    }
}
