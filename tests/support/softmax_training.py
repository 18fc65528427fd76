"""A stand-in for the trainings of examples/digits that starts in a tenth of a second: one layer, trained by Adam in NumPy.

For tests of what Airflow makes of a training: its options, its metrics and where its model lies.
"""

import argparse
import json
import os
from pathlib import Path

import fsspec
import numpy as np


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("steps", 300), ("batch_size", 64), ("learning_rate", 0.03), ("checkpoint_steps", 100)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    with fsspec.open(os.environ["DTF_INPUT_PATH"]) as file, np.load(file) as arrays:
        data = dict(arrays)
    chance = np.random.default_rng(1)
    weights, mean, square = np.zeros((3, 65, 10))

    def scores(images):
        return np.c_[images, np.ones(len(images))] @ weights

    for step in range(1, options.steps + 1):
        chosen = chance.integers(len(data["train_images"]), size=options.batch_size)
        images, labels = data["train_images"][chosen], data["train_labels"][chosen]
        likely = np.exp(scores(images))
        likely /= likely.sum(axis=1, keepdims=True)
        gradient = np.c_[images, np.ones(len(images))].T @ (likely - np.eye(10)[labels]) / len(images)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        weights -= options.learning_rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    if json.loads(os.environ["TF_CONFIG"])["task"]["index"]:
        return
    accuracy = float(np.mean(np.argmax(scores(data["test_images"]), axis=1) == data["test_labels"]))
    model = os.environ["DTF_OUTPUT_PATH"].rstrip("/") + "/model"
    files, _ = fsspec.url_to_fs(model)
    files.makedirs(model, exist_ok=True)
    with files.open(f"{model}/weights.npz", "wb") as file:
        np.savez(file, weights=weights)
    result = {"accuracy": accuracy, "steps": options.steps, "resumed_from_step": 0, "model": model}
    Path(os.environ["YTF_RESULT_FILE"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
