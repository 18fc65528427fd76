"""`HdfsReader` and `HdfsWriter`: one open file of HDFS, as Python's raw files are.

References
----------
Python, ``io.RawIOBase``: `io.BufferedReader` and `io.BufferedWriter` go around it.
"""

import contextlib
import http.client
import io
import threading
import time
from typing import Any, Optional

from .file_storage import StorageAway, StorageRefused
from .hdfs import Hdfs, Upload

#: Bytes that the first request for a place of a file asks for, and how much more each further one in order does.
READ_AHEAD, READ_MORE = 1024 * 1024, 4
#: The most that one request asks for, bytes.
MAX_READ_AHEAD = 256 * 1024 * 1024
#: Bytes of a new file that are kept until they are flushed, to send them again.
MAX_KEPT = 32 * 1024 * 1024
#: Seconds between two tries.
_PAUSE = 0.5
#: Seconds between two looks whether a new file exists, and how long a DataNode has for making it.
_LOOK, _APPEARS = 0.005, 1.0


class HdfsReader(io.RawIOBase):
    """A file that is read; safe in several threads by `read_at`.

    One request after the other goes to the DataNodes; as long as reading goes on in order, each asks for more bytes,
    which arrive while the caller works. A reader that a DataNode leaves goes on with another one.

    Parameters
    ----------
    hdfs : Hdfs
    path : str
    """

    def __init__(self, hdfs: Hdfs, path: str):
        status = hdfs.status(path)
        if status.is_directory:
            raise IsADirectoryError("%s is a directory" % path)
        self._hdfs, self._path, self.size = hdfs, path, status.length
        self._position = 0
        self._lock = threading.Lock()
        self._answer: Optional[http.client.HTTPResponse] = None
        self._at = self._end = 0  # the place of the open answer, and its end
        self._ahead = READ_AHEAD

    def read_at(self, offset: int, buffer: Any) -> int:
        """Fill a buffer from an offset on; return the number of bytes, less than its length only at the file's end."""
        view = memoryview(buffer).cast("B")[: max(0, self.size - offset)]
        done = 0
        with self._lock:
            until: Optional[float] = None
            while done < len(view):
                try:
                    count = self._read(offset + done, view[done:])
                    if not count:
                        raise StorageRefused("the answer about %s ends early" % self._path)
                    done += count
                    until = None
                except (OSError, http.client.HTTPException) as error:
                    if self._answer is not None:
                        self._hdfs.leave_out(self._answer)
                    self._drop()
                    until = until or time.monotonic() + self._hdfs.patience
                    if isinstance(error, FileNotFoundError) or time.monotonic() > until:
                        raise StorageRefused("%s: %r" % (self._path, error)) from error
                    time.sleep(_PAUSE)
        return done

    def _read(self, offset: int, view: memoryview) -> int:
        if self._answer is None or self._at != offset or self._at == self._end:
            in_order = self._at == offset and offset > 0
            self._drop()
            self._ahead = min(MAX_READ_AHEAD, self._ahead * READ_MORE) if in_order else READ_AHEAD
            self._at, self._end = offset, min(self.size, offset + max(self._ahead, len(view)))
            self._answer = self._hdfs.open_range(self._path, offset, self._end - offset)
        count = self._answer.readinto(view[: self._end - offset])
        self._at += count
        return count

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def readinto(self, buffer: Any) -> int:
        count = self.read_at(self._position, buffer)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = max(0, offset + (0, self._position, self.size)[whence])
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._drop()
        super().close()


class HdfsWriter(io.RawIOBase):
    """A file that is written from its start, or from its end on.

    What `flush` has ended can be read by everybody. When a DataNode is lost before, a new file of at most `MAX_KEPT`
    bytes is sent again as a whole; for all others, and after a refusal, this and all later calls fail.

    Parameters
    ----------
    hdfs : Hdfs
    path : str
        Its parents are made.
    append : bool
        Keep the content.
    """

    def __init__(self, hdfs: Hdfs, path: str, append: bool = False):
        self._hdfs, self._path, self._position = hdfs, path, 0
        self._upload: Optional[Upload] = None
        self._unflushed: Optional[bytearray] = None  # the whole content of a new file; None: it is not kept
        self._failure: Optional[OSError] = None  # the file is incomplete: nothing is sent any more
        if append:
            with contextlib.suppress(FileNotFoundError):
                self._position = hdfs.status(path).length
                return
        self._unflushed = bytearray()
        self._upload = hdfs.open_upload(path, "CREATE")
        until = time.monotonic() + _APPEARS
        while time.monotonic() < until:
            if hdfs.exists(path):
                return
            time.sleep(_LOOK)
        self.flush()  # raises what the DataNode refuses

    def write(self, data: Any) -> int:
        if self._failure is not None:  # a buffer above offers its content again
            raise self._failure
        content = memoryview(data).cast("B")
        self._position += len(content)
        if self._position > MAX_KEPT:
            self._unflushed = None
        elif self._unflushed is not None:
            self._unflushed += content
        self._send(content)
        return len(content)

    def flush(self) -> None:
        """Make the content visible to readers."""
        if self._upload is not None:
            self._send(memoryview(b""), ends=True)
            if self._position:
                self._unflushed = None

    def _send(self, content: memoryview, ends: bool = False) -> None:
        """Send a piece, or the last one; when a DataNode is lost, send the file again if it is kept."""
        operation, until = "APPEND", None
        while self._failure is None:
            try:
                if self._upload is None:
                    self._upload = self._hdfs.open_upload(self._path, operation)
                self._upload.send(content)
                if ends:
                    self._upload.finish()
                    self._upload = None
                return
            except OSError as error:
                if until is not None:
                    time.sleep(_PAUSE)
                until = until or time.monotonic() + self._hdfs.patience
                if not isinstance(error, StorageAway) or self._unflushed is None or time.monotonic() > until:
                    self._failure = error.with_traceback(None)  # which refers to the content
                elif self._upload is not None:
                    self._hdfs.leave_out(self._upload)
                self._upload, operation, content = None, "CREATE", memoryview(bytes(self._unflushed or b""))
        raise self._failure

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Return the position, as `tell` requests it; HDFS appends only."""
        if (offset, whence) != (0, io.SEEK_CUR):
            raise io.UnsupportedOperation("%s: a file of HDFS is written in order" % self._path)
        return self._position

    def writable(self) -> bool:
        return True
