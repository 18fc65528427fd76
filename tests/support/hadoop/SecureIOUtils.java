// Replaces Hadoop's class in the NodeManager of a secured minicluster. Hadoop's own needs libhadoop.so, which Maven does
// not have, and without it a secured NodeManager ends when it aggregates a log. All containers of a minicluster belong to
// one user of the operating system, so there is no owner to check.

package org.apache.hadoop.io;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

public class SecureIOUtils {
  public static RandomAccessFile openForRandomRead(File file, String mode, String owner, String group)
      throws IOException {
    return new RandomAccessFile(file, mode);
  }

  public static FSDataInputStream openFSDataInputStream(File file, String owner, String group) throws IOException {
    return FileSystem.getLocal(new org.apache.hadoop.conf.Configuration()).getRaw().open(new Path(file.getPath()));
  }

  public static FileInputStream openForRead(File file, String owner, String group) throws IOException {
    return new FileInputStream(file);
  }

  public static FileOutputStream createForWrite(File file, int permissions) throws IOException {
    if (!file.createNewFile()) {
      throw new AlreadyExistsException("File " + file + " already exists");
    }
    return new FileOutputStream(file);
  }

  public static class AlreadyExistsException extends IOException {
    private static final long serialVersionUID = 1L;

    public AlreadyExistsException(String message) {
      super(message);
    }

    public AlreadyExistsException(Throwable cause) {
      super(cause);
    }
  }
}
