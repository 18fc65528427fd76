"""The example of Oozie's guide on a real server: packed by one command, with the package in a PEX file, and trained twice."""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import javaproperties

from support.programs import ROOT, YTF
from tf_yarn_ops.hadoop.cluster import current_user

EXAMPLE = ROOT / "examples" / "oozie"
#: An interpreter without the package; the PEX file has the version of this one.
BARE = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def stamp(seconds, form="%Y-%m-%dT%H:%MZ"):
    return time.strftime(form, time.gmtime(seconds))


def retrain_twice(server, folder):
    """Pack the example, run it for two nominal times, and look at the outputs, the models and the one in use."""
    hadoop = server.cluster
    start = int(time.time()) // 60 * 60 - 600
    times = [start, start + 60]
    root = hadoop.default_filesystem
    env = {
        **os.environ,
        "YTF_RESOURCEMANAGER": hadoop.resourcemanager_url,
        "YTF_SITE": "",
        "OOZIE_URL": server.url,
        "PYTHONPATH": str(ROOT),
    }

    def run(*words):
        done = subprocess.run(words, cwd=EXAMPLE, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    folders = [f"/digits/days/{stamp(one, '%Y-%m-%dT%H%M')}" for one in times]
    place = hadoop.namenode_url.replace("http://", f"webhdfs://{current_user(env)}@")
    run(sys.executable, "../digits/prepare.py", f"{place}{folders[0]}/digits.npz")
    data = server.files.read(f"{folders[0]}/digits.npz")
    server.files.makedirs(folders[1], 0o755)
    server.files.create(f"{folders[1]}/digits.npz", data, 0o644)
    for day in folders:
        server.files.create(f"{day}/_SUCCESS", b"", 0o644)

    run(
        *YTF,
        "oozie",
        "package",
        "job.yaml",
        "--workflow",
        "workflow.xml",
        "--frequency",
        "1m",
        "--start",
        stamp(times[0]),
        "--end",
        stamp(times[1] + 60),
        "--data",
        "/digits/days/${YEAR}-${MONTH}-${DAY}T${HOUR}${MINUTE}",
        "--property",
        f"models={root}/models/digits",
        "--property",
        f"tensorflow={sys.prefix}",
        "--python",
        str(BARE),
        "--pex",
        "--sla-end",
        "30m",
        "--out",
        str(folder / "digits"),
        "--app-path",
        "/apps/digits",
    )
    with zipfile.ZipFile(folder / "digits" / "ytf.pex") as pex:
        assert {"tf_yarn_ops/oozie/launch.sh", "tf_yarn_ops/oozie/schemas/NOTICE"} <= set(pex.namelist())
    coordinator = run(*YTF, "oozie", "run", str(folder / "digits"))
    ended = server.wait(coordinator, "SUCCEEDED", "DONEWITHERROR", "KILLED", "FAILED", seconds=600)
    assert ended["status"] == "SUCCEEDED", ended

    outputs = [
        javaproperties.loads(server.data(action["externalId"], "train"))
        for action in sorted(ended["actions"], key=lambda action: action["nominalTime"])
    ]
    stamps = [stamp(one, "%Y%m%d%H%M") for one in times]
    assert [one["metric.started_from"] for one in outputs] == ["nothing", stamps[0]]
    assert [one["output_path"] for one in outputs] == [f"{root}/models/digits/{one}" for one in stamps]
    published = {one.name: {file.name for file in server.files.list(f"/models/digits/{one.name}")}
                 for one in server.files.list("/models/digits")}  # fmt: skip
    assert published == {one: {"_SUCCESS", "weights.npz"} for one in stamps} | {"in-use": {stamps[1]}}
    assert float(outputs[1]["metric.accuracy_before"]) > 0.9 > 0.5 > float(outputs[0]["metric.accuracy_before"])
    assert len({one["application_id"] for one in outputs}) == 2
    # Runs are ordered by their nominal time, so the second model was promoted last.
    assert [file.name for file in server.files.list("/models/digits/in-use")] == [stamps[1]]
