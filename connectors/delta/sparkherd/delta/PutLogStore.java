package sparkherd.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The log of Delta tables in S3, for `spark.delta.logStore.s3a.impl`.
 *
 * Delta's own is for one driver: it looks whether a commit is there and puts its file there then. This one has S3
 * decide: it puts the file with `If-None-Match: *`, which S3 refuses where there is one. Hadoop's S3A does that since
 * 3.4.2; one that cannot is refused. All drivers that write to a table have to use this.
 */
public class PutLogStore extends HadoopFileSystemLogStore {
    private static final String IF_NONE_MATCH = "fs.option.create.conditional.overwrite";
    private static final String WRITER = "sparkherd-writer";

    public PutLogStore(Configuration conf) {
        super(conf);
    }

    @Override
    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
            throws IOException {
        FileSystem store = path.getFileSystem(conf);
        if (overwrite) {
            fill(store.create(path, true), actions);
            return;
        }
        String writer = UUID.randomUUID().toString();
        try {
            fill(absent(store, path, writer), actions);
        } catch (IOException failed) {
            decide(store, path, writer, failed);
        }
    }

    @Override
    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return false;
    }

    /** A stream into a file that is put when it is closed, and only where there is none. */
    private static FSDataOutputStream absent(FileSystem store, Path path, String writer) throws IOException {
        FSDataOutputStreamBuilder<?, ?> builder = store.createFile(path);
        builder.create();
        builder.overwrite(false);
        builder.must(IF_NONE_MATCH, true);
        builder.opt("fs.s3a.create.header." + WRITER, writer);
        return (FSDataOutputStream) builder.build();
    }

    /** What was not written to its end must not be closed: that would publish it. */
    private static void fill(FSDataOutputStream stream, Iterator<String> actions) throws IOException {
        try {
            while (actions.hasNext()) {
                stream.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException | RuntimeException failed) {
            stream.abort();
            throw failed;
        }
        stream.close();
    }

    /** An answer may have been lost, and the second try of one's own put been refused: who has put it is beside it. */
    private static void decide(FileSystem store, Path path, String writer, IOException failed) throws IOException {
        byte[] found;
        try {
            found = store.getXAttrs(path).get("header." + WRITER);
        } catch (IOException unknown) {
            throw failed;
        }
        if (found == null || !writer.equals(new String(found, StandardCharsets.UTF_8))) {
            FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
            taken.initCause(failed);
            throw taken;
        }
    }
}
