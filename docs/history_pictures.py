"""Take the pictures of ``ytf ui`` for the guide: ``python docs/history_pictures.py``, with Chromium on PATH.

The history is made up, with fixed names; the pages are the real ones.
"""

import math
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.browser import browsing  # noqa: E402
from support.fake_yarn import FakeYarn, application, serving  # noqa: E402
from support.records import keep, record  # noqa: E402
from support.records_served import serving_pages  # noqa: E402
from tf_yarn_ops.hadoop.cluster import Cluster, StorageFacts  # noqa: E402
from tf_yarn_ops.hadoop.filesystem import MountedFileSystem  # noqa: E402
from tf_yarn_ops.runtime.common.reasons import Reason  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
HOUR = 3600.0
JOBS = (
    ("recommender-nightly", "ann", "nightly"),
    ("digits", "bob", "default"),
    ("churn", "ann", "default"),
    ("translate", "carol", "low"),
)
REASONS = (Reason.SUCCEEDED,) * 9 + (Reason.TASK_FAILED, Reason.OUT_OF_MEMORY, Reason.PREEMPTED)
#: Page, file, height of the window.
PAGES = (("/", "ui-list.png", 620),)


def fill(files: MountedFileSystem, cluster: Cluster, now: float) -> None:
    """Write the records of 240 jobs of the last 30 days."""
    chance = random.Random(14)
    for number in range(240):
        name, user, queue = JOBS[number % len(JOBS)]
        reason = chance.choice(REASONS)
        speed = chance.uniform(0.5, 1.5)
        ended = now - number * 3 * HOUR - chance.uniform(0, HOUR)
        made = record(
            240 - number,
            ended=ended,
            name=name,
            user=user,
            queue=queue,
            reason=reason,
            took=chance.uniform(400, 5000),
            waited=chance.expovariate(1 / 60),
            options={
                "command": "python train.py",
                "tasks": {"worker": {"instances": chance.choice([2, 4])}},
                "env": {"LEARNING_RATE": f"{speed / 1000:.4f}"},
                "environment": "venv:///opt/tf",
            },
            metrics={"loss": round(0.2 / speed, 4), "accuracy": round(1 - 0.1 / speed, 4)},
        )
        points = [
            [step * 100, 2 * math.exp(-step * speed / 12) + 0.2 / speed + chance.uniform(0, 0.08)] for step in range(40)
        ]
        made["series"][0]["points"] = points
        keep(files, cluster.acting_for(user).history, made)


def main() -> None:
    """Write the pictures."""
    now, yarn = time.time(), FakeYarn()
    yarn.add(application(1, "RUNNING", name="digits", user="bob", startedTime=int((now - 700) * 1000)))
    with tempfile.TemporaryDirectory() as root, serving(yarn) as url, browsing(width=1280) as page:
        cluster = Cluster(
            (url,), "ann", "ann", StorageFacts("viewfs://mini", "viewfs://mini", "/user/{user}/.skein", local_root=root)
        )
        fill(MountedFileSystem(root), cluster, now)
        with serving_pages(cluster) as address:
            page.goto(address)
            for path, name, height in PAGES:
                page.set_viewport_size({"width": 1280, "height": height})
                page.goto(address.partition("/?")[0] + path)
                page.screenshot(path=str(FOLDER / name))
    print(*(str(FOLDER / name) for _, name, _ in PAGES), sep="\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    main()
