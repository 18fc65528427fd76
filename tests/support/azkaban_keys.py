"""Properties of small jobs of the type, and how they are read."""

import pytest

from tf_yarn_ops.azkaban.job import read_azkaban_job
from tf_yarn_ops.errors import SpecInvalid

ONE = {"tf.worker.instances": "1"}
RUN = {**ONE, "tf.command": "run"}


def read(properties, folder, **settings):
    return read_azkaban_job(properties, folder, **settings)[0]


def faults_of(properties, folder, **settings):
    with pytest.raises(SpecInvalid) as caught:
        read_azkaban_job(properties, folder, **settings)
    return list(map(str, caught.value.faults))


def limits(folder, text, mode=0o644):
    path = folder / "limits.yaml"
    path.write_text(text)
    path.chmod(mode)
    return str(path)
