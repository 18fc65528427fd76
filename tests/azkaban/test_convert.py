"""`ytf convert tony`: the keys of TonY's own examples, as YAML that is a job."""

import pytest
from click.testing import CliRunner

from tf_yarn_ops.cli.ytf import ytf
from tf_yarn_ops.errors import SpecInvalid
from tf_yarn_ops.job.spec import JobSpec

#: Keys and values of tony-examples in linkedin/TonY, each with the options of its README.
EXAMPLES = {
    "mnist-tensorflow": (
        {
            "tony.application.security.enabled": "false",
            "tony.worker.instances": "2",
            "tony.worker.memory": "4g",
            "tony.ps.instances": "1",
            "tony.worker.gpus": "1",
        },
        {"executes": "mnist_distributed.py", "task_params": "--steps 1000", "python_binary_path": "python3"},
    ),
    "mnist-pytorch": (
        {"tony.application.framework": "pytorch", "tony.worker.instances": "4", "tony.worker.memory": "4g"},
        {"executes": "mnist_distributed.py", "python_binary_path": "python3"},
    ),
    "linearregression-mxnet": (
        {
            "tony.application.security.enabled": "false",
            "tony.scheduler.instances": "1",
            "tony.server.instances": "2",
            "tony.ps.instances": "0",
            "tony.worker.instances": "2",
            "tony.worker.vcores": "2",
            "tony.worker.memory": "4G",
            "tony.application.framework": "mxnet",
            "tony.application.name": "mxnet - linearregression",
        },
        {},
    ),
}


@pytest.fixture
def run(tmp_path):
    """Return a function that converts keys, of a tony.xml and a tony-site.xml, and returns how the command ended."""
    (tmp_path / "src" / "models").mkdir(parents=True)
    for name in ("mnist_distributed.py", "x.py", "models/deep.py"):
        (tmp_path / "src" / name).write_text("")

    def convert_keys(keys, options=(), site=None):
        names = []
        for name, values in (("tony.xml", keys), ("tony-site.xml", site)):
            if values is not None:
                body = "".join(
                    f"<property><name>{key}</name><value>{text}</value></property>" for key, text in values.items()
                )
                (tmp_path / name).write_text(f"<configuration>{body}</configuration>")
                names.append(str(tmp_path / name))
        words = [word for name, text in dict(options).items() for word in (f"--{name}", text)]
        return CliRunner().invoke(ytf, ["convert", "tony", *names, *words])

    return convert_keys


@pytest.mark.parametrize(
    "name, framework, command, types",
    [
        ("mnist-tensorflow", "tensorflow", "python3 mnist_distributed.py --steps 1000", {"worker": 2, "ps": 1}),
        ("mnist-pytorch", "pytorch", "python3 mnist_distributed.py", {"worker": 4}),
    ],
)
def test_examples_of_tony_are_jobs(run, name, framework, command, types):
    done = run(*EXAMPLES[name])
    job = JobSpec.from_yaml(done.stdout)
    assert (job.framework, job.command) == (framework, command)
    assert {kind: task.instances for kind, task in job.tasks.items()} == types
    assert job.tasks["worker"].memory == 4096


def test_keys_without_counterpart_are_comments_with_the_reason(run):
    text = run(*EXAMPLES["linearregression-mxnet"]).stdout
    assert "# tony.application.framework=mxnet: " in text and "pytorch" in text.splitlines()[0]
    assert "# command: the program was an option of TonY's client" in text and "\ncommand:" not in text
    job = JobSpec.from_yaml(text + "command: python train.py\n")
    assert {kind: task.instances for kind, task in job.tasks.items()} == {"scheduler": 1, "server": 2, "worker": 2}
    done = run(
        {"tony.worker.instances": "1", "tony.application.prepare-stage": "worker", "tony.worker.memmory": "2g"},
        {"executes": "x.py"},
    )
    assert done.stdout.startswith(
        "# tony.application.prepare-stage=worker: left out; this key of TonY has no counterpart here\n"
        "# tony.worker.memmory=2g: left out; this key of TonY has no counterpart here (did you mean 'tony.worker.memory'?)\n"
    )
    assert done.stderr == "2 keys left out: tony.application.prepare-stage, tony.worker.memmory, see the comments\n"


@pytest.mark.parametrize(
    "options, keys, messages",
    [
        (
            {"executes": "mnist.py", "python_binary_path": "python3"},
            {"tony.ps.command": "bash -e serve.sh"},
            [
                "--executes: 'mnist.py' is not in the folder of the program; give the folder that has it: --src_dir",
                "tony.ps.command: 'serve.sh' is not in the folder of the program; give the folder that has it: --src_dir",
            ],
        ),
        (
            {"executes": "x.py", "src_dir": "nosuch", "python_venv": "a.rar"},
            {},
            [
                "--src_dir: there is no folder 'nosuch' in the project",
                "--python_venv: 'a.rar' does not end with .tar.gz or .tgz or .zip",
            ],
        ),
        (
            {"executes": "python -u ./models/nosuch.py --x y.py"},
            {},
            [
                "--executes: 'models/nosuch.py' is not in the folder of the program; give the folder that has it: --src_dir"
            ],
        ),
    ],
)
def test_missing_program_is_a_fault(run, options, keys, messages):
    done = run({"tony.worker.instances": "1", "tony.ps.instances": "1", **keys}, options)
    assert isinstance(done.exception, SpecInvalid) and done.stdout == ""
    assert sorted(map(str, done.exception.faults)) == sorted(messages)


@pytest.mark.parametrize(
    "options, keys",
    [
        ({"executes": "/opt/jobs/mnist.py"}, {}),
        ({"executes": "train --config mnist.py"}, {}),
        ({"executes": "cd /opt/jobs && python mnist.py"}, {}),
        ({"executes": "python models/deep.py"}, {}),
        ({"executes": "'x.py --steps 5'", "python_binary_path": "python3"}, {}),
        ({"executes": "mnist.py", "src_dir": "hdfs:///jobs/src.zip"}, {}),
        ({"executes": "code/mnist.py"}, {"tony.worker.resources": "hdfs:///jobs/a.zip::code#archive"}),
        ({"executes": "mnist.py"}, {"tony.worker.resources": "hdfs:///jobs/mnist.py"}),
    ],
)
def test_program_in_the_job_or_on_the_nodes_is_no_fault(run, options, keys):
    done = run({"tony.worker.instances": "1", **keys}, options)
    assert done.exit_code == 0 and JobSpec.from_yaml(done.stdout) and done.stderr == "", (done.exception, done.stderr)


def test_keys_of_the_job_win_over_those_of_the_site(run):
    done = run(
        {"tony.worker.instances": "2"}, {"executes": "x.py"}, {"tony.worker.instances": "3", "tony.yarn.queue": "ml"}
    )
    job = JobSpec.from_yaml(done.stdout)
    assert (job.tasks["worker"].instances, job.queue) == (2, "ml")


#: The command of TonY's README, behind the name of its class.
README = [
    "-executes", "models/deep.py", "-task_params", "--steps 2500 --batch_size 64", "-python_venv", "my-venv.zip",
    "-python_binary_path", "Python/bin/python", "-src_dir", "src", "-shell_env", "LD_LIBRARY_PATH=/usr/lib/server,/b",
    "-container_env", "A=b=c", "-conf", "tony.worker.instances=2", "-conf", "tony.yarn.queue=ml",
    "-sidecar_tensorboard_log_dir", "hdfs:///logs",
]  # fmt: skip


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_command_line_of_tony_can_be_pasted(dashes, tmp_path, monkeypatch):
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "models" / "deep.py").touch()
    (tmp_path / "tony.xml").write_text("<configuration><property><name>tony.yarn.queue</name><value>x</value>"
                                       "</property></configuration>")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    words = [f"{dashes}{word[1:]}" if word[0] == "-" and " " not in word else word for word in README]
    done = CliRunner().invoke(ytf, ["convert", "tony", *words, f"{dashes}conf_file=tony.xml"])
    job = JobSpec.from_yaml(done.stdout)
    assert job.command == "chmod -R u+x venv && venv/Python/bin/python models/deep.py --steps 2500 --batch_size 64"
    assert (job.env, job.queue) == ({"LD_LIBRARY_PATH": "/usr/lib/server,/b", "A": "b=c"}, "ml")
    assert (bool(job.tensorboard), job.output, job.tasks["worker"].instances) == (True, "hdfs:///logs", 2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tony-job.xml"], "No such command 'tony-job.xml'."),
        (["tony", "-exectues", "x.py"], "TonY's client has no option -exectues (did you mean 'executes'?)"),
        (["tony", "-conf", "secret"], "Invalid value for '--conf' / '-conf': give key=value\n"),
    ],
)
def test_wrong_word_of_a_command_line_is_named(words, says):
    done = CliRunner().invoke(ytf, ["convert", *words], prog_name="ytf")
    assert done.exit_code == 2 and says in done.stderr, done.stderr


@pytest.mark.parametrize("conf", ["tony.worker.instances=x", "tony.worker.instancess=2", "worker.instances=2"])
def test_job_without_tasks_names_the_keys_of_tony(conf):
    done = CliRunner().invoke(ytf, ["convert", "tony", "-conf", conf])
    faults = [str(fault) for fault in done.exception.faults]
    said = "tony.<type>.instances: missing; say which tasks the job has, for example tony.worker.instances=4"
    assert faults[-1] == said and faults[0].partition(":")[0] in (conf.partition("=")[0], "tony.<type>.instances")


def test_file_that_is_no_xml_is_reported(run, tmp_path):
    (tmp_path / "broken.xml").write_text("<configuration>")
    done = CliRunner().invoke(ytf, ["convert", "tony", str(tmp_path / "broken.xml")])
    assert done.exit_code == 2 and "broken.xml is not XML" in done.stderr
    (tmp_path / "memory.xml").symlink_to("/proc/self/mem")
    done = CliRunner().invoke(ytf, ["convert", "tony", str(tmp_path / "memory.xml")])
    assert done.exit_code == 2 and "[Errno 5]" in done.stderr
