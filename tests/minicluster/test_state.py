"""The file with a cluster's state."""

import pytest

from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster


def test_a_foreign_state_file_is_refused(tmp_path):
    (tmp_path / "state.json").write_text('{"schema": 99}')
    with pytest.raises(MiniClusterError, match=r"state\.json is not readable .*: remove .* and start again"):
        MiniCluster(tmp_path).up()
