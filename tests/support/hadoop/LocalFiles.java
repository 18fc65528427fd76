// The local file system of YARN's daemons in a minicluster. Hadoop's own needs libhadoop.so, which Maven does not have, and
// without it starts a process (chmod, ls, readlink) for each permission and each link: more than a hundred for a job. Java's own calls
// need none.

package tf_yarn_ops.minicluster;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/** The value of fs.AbstractFileSystem.file.impl. */
public class LocalFiles extends ChecksumFs {
  LocalFiles(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(new RawFs(uri, conf));
  }

  /** The value of fs.file.impl, Hadoop's older interface. */
  public static class Older extends LocalFileSystem {
    public Older() {
      super(new Raw());
    }
  }

  /** The same as Hadoop's RawLocalFs, for our own Raw. */
  static class RawFs extends DelegateToFileSystem {
    RawFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
      super(uri, new Raw(), conf, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public FsServerDefaults getServerDefaults(Path path) throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    @Deprecated
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  static class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      Files.setAttribute(pathToFile(path).toPath(), "unix:mode", (int) permission.toShort());
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath()) ? super.getFileLinkStatus(path) : getFileStatus(path);
    }

    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
      java.nio.file.Path file = pathToFile(path).toPath();
      try {
        Map<String, Object> found =
            Files.readAttributes(file, "unix:size,isDirectory,lastModifiedTime,lastAccessTime,mode,owner,group");
        return new FileStatus(
            (Long) found.get("size"),
            (Boolean) found.get("isDirectory"),
            1,
            getDefaultBlockSize(path),
            ((FileTime) found.get("lastModifiedTime")).toMillis(),
            ((FileTime) found.get("lastAccessTime")).toMillis(),
            new FsPermission((short) ((Integer) found.get("mode") & 01777)),
            found.get("owner").toString(),
            found.get("group").toString(),
            new Path(file.toString()).makeQualified(getUri(), getWorkingDirectory()));
      } catch (FileSystemException error) { // also below a file, as Hadoop's own
        throw new FileNotFoundException("File " + path + " does not exist");
      }
    }
  }
}
