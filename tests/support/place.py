"""A fake YARN, a file system of the test, and launchers on both."""

from support.fake_yarn import STAMP
from tf_yarn_ops.hadoop.cluster import current_user, discover
from tf_yarn_ops.hadoop.site import Site
from tf_yarn_ops.job.spec import JobSpec, TaskSpec
from tf_yarn_ops.launch.launcher import Launcher

USER = current_user({})
ID = f"application_{STAMP}_0001"
#: The requests of one submission, by their method and the beginning of their path.
REQUESTS = [
    ("GET", "/ws/v1/cluster/scheduler"),
    ("POST", "/ws/v1/cluster/apps/new-application"),
    ("POST", "/ws/v1/cluster/apps"),
    ("GET", f"/ws/v1/cluster/apps/{ID}"),
    ("PUT", f"/ws/v1/cluster/apps/{ID}/timeout"),
]


class Place:
    """A fake YARN, a file system and launchers on both."""

    def __init__(self, yarn, root):
        root.mkdir()
        self.yarn, self.url, self.root = yarn, yarn.url, root
        yarn.conf = {
            "fs.defaultFS": "viewfs://mini",
            "fs.viewfs.mounttable.mini.linkMergeSlash": f"file://{root}",
            "yarn.application.classpath": "/etc/hadoop/conf,/opt/hadoop/*",
        }

    def launcher(self, site=None, **options):
        return Launcher(self.cluster(site), **options)

    def cluster(self, site=None):
        return discover(self.url, {"HOME": "/nowhere", "HADOOP_USER_NAME": USER}, site=site or Site())

    @property
    def staging(self):
        return self.root / "user" / USER / ".skein"

    def directories(self):
        return sorted(path.name for path in self.staging.glob("application_*"))

    def body(self):
        return self.yarn.apps[ID]["body"]


def job(**values):
    tasks = values.pop("tasks", {"worker": TaskSpec(instances=2, memory=512)})
    return JobSpec(tasks=tasks, **{"command": "true", "name": "digits"} | values)


def cancel_at(place, launcher, method, start):
    """Cancel when a request begins with this."""
    place.yarn.faults.append(lambda m, path: launcher.cancel() if m == method and path.startswith(start) else None)


def read_proto(place, name=ID):
    """Return the specification that Skein's application master reads."""
    from skein import proto

    message = proto.ApplicationSpec()
    message.ParseFromString(next(place.staging.glob(f"{name}/*/.skein.proto")).read_bytes())
    return message
