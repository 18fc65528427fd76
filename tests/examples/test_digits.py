"""The digits example as real processes: each training to its accuracy, through kills and restarts, without YARN.

What YARN and the agent do for a task is done here by `Cluster`: a working directory into which every file is linked
from a directory of its own, a port that is held until TensorFlow binds it, and the environment.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest

from support.http_server import Handler, running
from support.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"
DEADLINE = 240  # seconds for one wait: TensorFlow's import alone takes 6 s of CPU in each process


class Cluster:
    """Local processes that take a job's tasks for themselves, each in a process group of its own.

    Parameters
    ----------
    directory : Path
        One working directory a task is made in it. Clusters of the same directory share the output folder, as the
        rounds of a job do.
    counts : dict of str to int
        Task types and their number of tasks.
    command : str
        The script and its options.
    """

    def __init__(self, directory, data, counts, command):
        self.directory, self.data, self.command = directory, data, command.split()
        self.output = directory / "output"
        self.tasks = [(name, index) for name, count in counts.items() for index in range(count)]
        self.processes = {}
        self._ports = ExitStack()
        self.spec = {}
        for name, _ in self.tasks:
            if name != "evaluator":
                self.spec.setdefault(name, []).append(f"127.0.0.1:{self._hold_port()}")

    def __enter__(self):
        for task in self.tasks:
            self.start(task)
        return self

    def __exit__(self, *_):
        self.kill(*self.processes)
        self._ports.close()

    def _hold_port(self):
        held = self._ports.enter_context(socket.socket())
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]

    def container(self, task):
        return self.directory / "{}-{}".format(*task)

    def start(self, task):
        container = self.container(task)
        for file in EXAMPLE.glob("*.py"):
            localized = self.directory / "filecache" / file.name / file.name
            if not localized.exists():
                localized.parent.mkdir(parents=True)
                localized.write_bytes(file.read_bytes())
            container.mkdir(exist_ok=True)
            if not (container / file.name).exists():
                (container / file.name).symlink_to(localized)
        environment = {
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": self.spec, "task": {"type": task[0], "index": task[1]}}),
            "TF_GRPC_REUSE_PORT": "true",
            "DTF_INPUT_PATH": str(self.data),
            "DTF_OUTPUT_PATH": str(self.output),
            "YTF_RESULT_FILE": str(container / "result.json"),
            "PYTHONPATH": str(container),
        }
        with open(container / "log", "ab") as log:
            self.processes[task] = subprocess.Popen(
                [sys.executable, *self.command],
                cwd=container,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, *tasks):
        for process in (self.processes[task] for task in tasks):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def wait_for_exit(self, *tasks):
        """Wait for the tasks' success; the first failure of any task ends the wait with its log."""
        wait_until(lambda: self.exit_codes(*tasks) == [0] * len(tasks), f"{tasks} to end", self)

    def wait_for_checkpoint(self, step):
        wait_until(lambda: self.latest_checkpoint() >= step, f"checkpoint {step}", self)

    def latest_checkpoint(self):
        """The step that a restart goes on from."""
        state = self.output / "checkpoints" / "checkpoint"
        found = re.match(r'model_checkpoint_path: "ckpt-(\d+)"', state.read_text()) if state.exists() else None
        return int(found[1]) if found else 0

    def exit_codes(self, *tasks):
        return [self.processes[task].poll() for task in tasks]

    def result(self, task):
        return json.loads((self.container(task) / "result.json").read_text())

    def log(self, task):
        return (self.container(task) / "log").read_text(errors="replace")


def wait_until(condition, what, cluster):
    def logs(tasks):
        return "\n".join(f"{task}:\n{cluster.log(task)[-3000:]}" for task in tasks)

    def reached():
        if condition():
            return True
        failed = [task for task in cluster.processes if cluster.exit_codes(task)[0] not in (None, 0)]
        assert not failed, f"waited for {what}; failed: {failed}\n{logs(failed)}"
        return False

    until(reached, DEADLINE, what=lambda: f"{what}\n{logs(cluster.processes)}\nThat")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    target = tmp_path_factory.mktemp("data") / "digits.npz"
    subprocess.run([sys.executable, EXAMPLE / "prepare.py", target], check=True, timeout=DEADLINE)
    return target


def assert_trained(cluster, task, *, steps, resumed_from_step):
    """The result says what was asked for, and the exported model does what the result says."""
    import tensorflow as tf

    result = cluster.result(task)
    assert (result["steps"], result["resumed_from_step"]) == (steps, resumed_from_step)
    assert result["accuracy"] >= 0.95
    assert result["model"] == str(cluster.output / "model")
    with np.load(cluster.data) as arrays:
        model = tf.saved_model.load(result["model"])  # a name of its own: the function alone does not keep its weights
        right = np.argmax(model.serve(arrays["test_images"]), axis=1) == arrays["test_labels"]
    assert np.mean(right) == result["accuracy"]
    assert list((cluster.output / "logs" / "train").glob("events.*"))


@pytest.mark.slow
def test_parameter_server_survives_a_restart_and_a_killed_worker(tmp_path, data):
    """The restart has new ports. `tests/examples/test_demo.py` trains from nothing, with two workers."""
    counts = {"chief": 1, "worker": 1, "ps": 1}
    slow = "parameter_server.py --steps 800 --checkpoint_steps 50 --step_delay 0.01"
    with Cluster(tmp_path, data, counts, slow) as first:
        first.wait_for_checkpoint(100)
    stopped_at = first.latest_checkpoint()
    with Cluster(tmp_path, data, counts | {"evaluator": 1}, slow) as second:
        assert second.spec != first.spec
        second.wait_for_checkpoint(stopped_at + 50)
        # The only worker: whatever is trained after its death is trained by the process that comes back.
        second.kill(("worker", 0))
        assert second.latest_checkpoint() < 800
        second.start(("worker", 0))
        second.wait_for_exit(("chief", 0), ("evaluator", 0))
        assert second.exit_codes(("worker", 0), ("ps", 0)) == [None] * 2  # they serve until ended
    assert_trained(second, ("chief", 0), steps=800, resumed_from_step=stopped_at)
    measured = json.loads((second.output / "eval" / "accuracy.json").read_text())
    assert (measured["step"], measured["accuracy"]) == (800, second.result(("chief", 0))["accuracy"])
    assert list((second.output / "logs" / "eval").glob("events.*"))


@pytest.mark.slow
def test_multi_worker_goes_on_from_the_checkpoint_and_all_workers_exit_0(tmp_path, data):
    workers = ("worker", 0), ("worker", 1)
    with Cluster(tmp_path, data, {"worker": 2}, "multi_worker.py --steps 500 --step_delay 0.01") as first:
        first.wait_for_checkpoint(100)
    stopped_at = first.latest_checkpoint()
    with Cluster(tmp_path, data, {"worker": 2}, "multi_worker.py") as second:
        second.wait_for_exit(*workers)
    assert_trained(second, workers[0], steps=600, resumed_from_step=stopped_at)
    assert not (second.container(workers[1]) / "result.json").exists()  # one writes for all
    saved = {path.name.partition(".")[0] for path in (second.output / "checkpoints").glob("ckpt-*")}
    assert saved == {"ckpt-400", "ckpt-500", "ckpt-600"}


@pytest.mark.slow
def test_single_task_goes_on_from_the_checkpoint_and_its_model_predicts(tmp_path, data):
    for command, steps, resumed_from_step in ("single.py --steps 300", 300, 0), ("single.py", 600, 300):
        with Cluster(tmp_path, data, {"worker": 1}, command) as cluster:
            cluster.wait_for_exit(("worker", 0))
        assert_trained(cluster, ("worker", 0), steps=steps, resumed_from_step=resumed_from_step)
    trained = cluster.result(("worker", 0))
    with Cluster(tmp_path, data, {"worker": 1}, f"predict.py {trained['model']}") as cluster:
        cluster.wait_for_exit(("worker", 0))
    assert cluster.result(("worker", 0)) == {
        "predictions": 360, "accuracy": trained["accuracy"], "model": trained["model"]}  # fmt: skip
    with np.load(data) as arrays:
        right = np.loadtxt(cluster.output / "predictions.csv", dtype=int) == arrays["test_labels"]
    assert np.mean(right) == trained["accuracy"]


class WebHdfs(Handler):
    """WebHDFS on the wire, for files that live in a dictionary: NameNode and DataNode in one, with the redirect."""

    def answer(self, body=b"", status=200, headers=()):
        body = body if isinstance(body, bytes) else json.dumps(body)
        self.reply(status, {"Content-Type": "application/json", **dict(headers)}, body)

    def handle_operation(self):
        url = urlsplit(self.path)
        path, query = unquote(url.path).removeprefix("/webhdfs/v1"), parse_qs(url.query)
        files, operation = self.server.files, query["op"][0].upper()
        below = {name.removeprefix(path + "/").split("/")[0] for name in files if name.startswith(path + "/")}
        if operation == "CREATE" and "datanode" not in query:
            return self.answer(status=307, headers={"Location": f"{self.server.address}{self.path}&datanode=true"})
        if operation == "CREATE":
            files[path] = self.read_body()
            return self.answer(status=201)
        if operation == "RENAME":
            target = query["destination"][0]
            moved = target not in files and path in files
            if moved:
                files[target] = files.pop(path)
            return self.answer({"boolean": moved})
        if operation == "DELETE":
            return self.answer({"boolean": files.pop(path, None) is not None})
        if path not in files and not below:
            missing = {"exception": "FileNotFoundException", "message": f"File does not exist: {path}"}
            return self.answer({"RemoteException": missing}, status=404)
        if operation == "OPEN":
            return self.answer(files[path])
        if operation == "GETFILESTATUS":
            return self.answer({"FileStatus": self.status("", path)})
        children = [self.status(name, f"{path}/{name}") for name in sorted(below)]
        return self.answer({"FileStatuses": {"FileStatus": children}})

    do_GET = do_PUT = do_DELETE = handle_operation

    def status(self, name, path):
        content = self.server.files.get(path)
        kind = "DIRECTORY" if content is None else "FILE"
        return {"pathSuffix": name, "type": kind, "length": len(content or b""), "modificationTime": hash(content)}

    def read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body


@pytest.fixture
def storage(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.chdir(tmp_path)
    return import_module("storage")


@pytest.fixture
def webhdfs(monkeypatch):
    with running(WebHdfs) as server:
        server.files, server.address = {}, f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("WEBHDFS_URL", server.address)
        yield server


@pytest.mark.slow
def test_data_is_prepared_in_hdfs_and_read_from_there(storage, webhdfs, data):
    url = "hdfs://namenode:8020/user/ada/the digits.npz"
    command = [sys.executable, EXAMPLE / "prepare.py", url, "--webhdfs", webhdfs.address]
    subprocess.run(command, check=True, timeout=DEADLINE)
    assert list(webhdfs.files) == ["/user/ada/the digits.npz"]
    assert storage.read_bytes(url) == data.read_bytes()


def test_a_folder_in_hdfs_is_the_same_on_both_sides(storage, webhdfs):
    url = "hdfs://namenode:8020/out/checkpoints"
    writer, reader = storage.Folder(url), storage.Folder(url)
    reader.pull()  # nothing is there yet
    for name, content in ("ckpt-1.index", "one"), ("variables/part", "old"):
        (writer.path / name).parent.mkdir(exist_ok=True)
        (writer.path / name).write_text(content)
    writer.push()
    assert webhdfs.files == {"/out/checkpoints/ckpt-1.index": b"one", "/out/checkpoints/variables/part": b"old"}
    reader.pull()
    (writer.path / "ckpt-1.index").unlink()
    (writer.path / "variables" / "part").write_text("newer")
    webhdfs.files["/out/checkpoints/of-others"] = b"kept"
    writer.push()
    reader.pull()
    assert webhdfs.files == {"/out/checkpoints/variables/part": b"newer", "/out/checkpoints/of-others": b"kept"}
    found = {path.relative_to(reader.path).as_posix(): path.read_text() for path in reader.path.rglob("*.*")}
    assert found == {} and (reader.path / "variables" / "part").read_text() == "newer"


@pytest.mark.parametrize(
    ("url", "site", "address"),
    [
        ("hdfs://nn.example:8020/x", {}, "http://nn.example:9870"),
        ("hdfs://nn.example/x", {"dfs.namenode.http-address": "nn.example:50070"}, "http://nn.example:50070"),
        ("hdfs:///x", {"dfs.namenode.http-address": "nn.example:50070"}, "http://nn.example:50070"),
        ("hdfs://other:8020/x", {"dfs.namenode.http-address": "nn.example:50070"}, "http://other:50070"),
        (
            "hdfs://lake/x",
            {"dfs.namenode.http-address.lake.nn1": "a:9870", "dfs.namenode.http-address.lake.nn2": "b:9870"},
            "http://a:9870;http://b:9870",
        ),
    ],
)
def test_the_namenode_is_found_in_the_configuration(storage, tmp_path, url, site, address):
    entries = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in site.items()]
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{''.join(entries)}</configuration>")
    assert storage.webhdfs_address(url, {"HADOOP_CONF_DIR": str(tmp_path)}) == address
    assert storage.webhdfs_address(url, {"WEBHDFS_URL": "http://given:1"}) == "http://given:1"


def test_unknown_namenode_is_reported_with_the_setting(storage):
    with pytest.raises(ValueError, match="set WEBHDFS_URL to its HTTP address"):
        storage.webhdfs_address("hdfs:///x", {})
