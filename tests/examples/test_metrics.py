"""The example with a Keras callback writes lines that the agent reads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tf_yarn_ops.runtime.agent.metrics import MetricsFile

TRAIN = Path(__file__).parents[2] / "examples" / "metrics" / "train.py"


@pytest.mark.slow
def test_the_callback_writes_the_metrics_of_every_hundredth_step(tmp_path):
    path = tmp_path / "metrics"
    subprocess.run([sys.executable, TRAIN], check=True, timeout=280, capture_output=True,
                   env={**os.environ, "YTF_METRICS_FILE": str(path), "EPOCHS": "1", "CUDA_VISIBLE_DEVICES": ""})
    points, left_out = MetricsFile(str(path)).read(last=True)
    assert left_out == 0 and {"loss", "accuracy"} == set(points)
    assert [step for step, _ in points["loss"]] == [float(step) for step in range(100, 1001, 100)]
