"""A cluster's folder, before anything starts."""

import os
import shutil
import socket
import stat
from collections import namedtuple
from dataclasses import replace

import pytest

from support.machines import make_settings
from tf_yarn_ops.errors import MiniClusterError
from tf_yarn_ops.minicluster import MiniCluster, cluster_folder
from tf_yarn_ops.minicluster.daemon_settings import Settings


def install(directory, **options):
    return cluster_folder.prepare_folder(replace(make_settings(directory, **options), ports={}))


def test_a_folder_is_laid_out_and_remembered(machine):
    (machine / "one").mkdir()
    settings = install(machine / "one", light=True)
    assert cluster_folder.load_settings(machine / "one", Settings) == settings
    assert os.access(machine / "one" / "bin" / "yarn", os.X_OK)
    shared = machine / "one" / "files" / "tmp" / "logs"
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


def test_free_ports_are_kept_and_taken_ones_replaced(machine):
    (machine / "one").mkdir()
    first = install(machine / "one", light=True)
    assert install(machine / "one", light=True).ports == first.ports
    with socket.create_server(("127.0.0.1", first.ports["rm-web"])):
        assert install(machine / "one", light=True).ports["rm-web"] != first.ports["rm-web"]


def test_ports_are_kept_when_the_number_of_nodes_changes(machine):
    (machine / "one").mkdir()
    first = install(machine / "one").ports
    more = install(machine / "one", nodes=3).ports
    assert {name: more[name] for name in first} == first and len(set(more.values())) == len(more) > len(first)
    with socket.create_server(("127.0.0.1", first["rm-web"])):
        changed = install(machine / "one", nodes=2).ports
    assert {name for name in first if changed[name] != first[name]} == {"rm-web"}


def test_logs_of_the_last_run_stay_beside_the_new_ones(machine):
    (machine / "one" / "logs").mkdir(parents=True)
    (machine / "one" / "logs" / "rm.log").write_text("old")
    install(machine / "one")
    assert (machine / "one" / "logs" / "rm.log.1").read_text() == "old"
    assert not (machine / "one" / "logs" / "rm.log").exists()


@pytest.mark.parametrize("name", ["with blank", "with,comma", "with:colon", "with$dollar", "with'quote", "with\nline"])
def test_paths_that_hadoop_misreads_are_refused(machine, name):
    (machine / name).mkdir()
    with pytest.raises(MiniClusterError, match=r"Hadoop cannot work in .*: use a path of letters, digits and"):
        install(machine / name)


def test_a_full_disk_is_refused_before_anything_starts(machine, monkeypatch):
    usage = namedtuple("usage", "total used free")(100 * 2**30, 100 * 2**30 - 2**29, 2**29)  # type: ignore[call-arg]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(MiniClusterError) as caught:
        MiniCluster(machine / "one").up()
    assert str(caught.value) == (
        f"the disk of {machine}/one is full (512 MiB of 102400 MiB are free, Hadoop needs 1 % and 256 MiB):"
        " free some, or use another folder (--dir)"
    )


def test_folder_that_cannot_be_made_is_reported(machine):
    (machine / "file").touch()
    with pytest.raises(MiniClusterError, match=r"the cluster in .*/file/one could not be started: .*Not a directory"):
        MiniCluster(machine / "file" / "one").up()


def test_a_foreign_state_file_is_refused(tmp_path):
    (tmp_path / "state.json").write_text('{"schema": 99}')
    with pytest.raises(MiniClusterError, match=r"state\.json is not readable .*: remove .* and start again"):
        MiniCluster(tmp_path).up()
