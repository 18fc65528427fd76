"""TensorBoard on this machine; its pages and copies on the way: tests/ui/test_boards.py, tests/cli/test_tensorboard.py."""

import tempfile

import pytest

from support.machines import write_script
from tf_yarn_ops.errors import Cancelled
from tf_yarn_ops.hadoop.filesystem import MountedFileSystem
from tf_yarn_ops.history.local_board import LocalBoard, Shown


def test_copy_that_goes_on_after_an_end_leaves_nothing(tmp_path, monkeypatch):
    """As where a further board of ``ytf ui`` ends one that still copies: the copy makes the folder again."""
    (tmp_path / "bin").mkdir()
    write_script(tmp_path / "bin" / "tensorboard", "exec sleep 600")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "store/run").mkdir(parents=True)
    (tmp_path / "store/run/events.out.tfevents.1.a").write_bytes(b"x")

    class Ending(MountedFileSystem):
        """A file system whose answer to the first list comes when the board has been ended."""

        def list(self, path):
            board.end()
            return super().list(path)

    board = LocalBoard([Shown("run", "hdfs://nn/run")], lambda place: (Ending(str(tmp_path / "store")), "/run"))
    with pytest.raises(Cancelled):
        board.start()
    assert list((tmp_path / "temporary").rglob("events*")), "the copy has gone on"
    board.end()
    assert list((tmp_path / "temporary").iterdir()) == []
