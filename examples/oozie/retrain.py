"""Train the digits of one run of a schedule, from the weights of the newest model of an earlier run.

Its models lie in the folder ``--models``, each in a folder that is named by the run's nominal time (``--stamp``).
"""

import argparse
import json
import os
from io import BytesIO
from pathlib import Path

import digits
import numpy as np
import tensorflow as tf

WEIGHTS = "weights.npz"


def earlier_models(models, stamp):
    """Return the names of complete models of earlier runs, the oldest first."""
    folders = (path.split("/")[-2] for path in tf.io.gfile.glob(f"{models}/*/{WEIGHTS}"))
    return sorted(folder for folder in folders if folder < stamp)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", required=True)
    parser.add_argument("--stamp", required=True)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    digits.configure_logging()
    data = digits.load_digits(os.environ["DTF_INPUT_PATH"])
    model = digits.build_model()
    earlier = earlier_models(options.models, options.stamp)
    if earlier:
        model.set_weights(list(digits.load_arrays(f"{options.models}/{earlier[-1]}/{WEIGHTS}").values()))
    _, before = digits.measure(model, data.test_images, data.test_labels)

    optimizer = digits.build_optimizer(model, 0.005)
    batches = iter(digits.batches(data.train_images, data.train_labels, 64))
    train_step = digits.build_step(model, optimizer)
    for _ in range(options.steps):
        train_step(*next(batches))
    _, accuracy = digits.measure(model, data.test_images, data.test_labels)
    content = BytesIO()
    np.savez(content, *model.get_weights())
    digits.write_file(f"{os.environ['DTF_OUTPUT_PATH']}/{WEIGHTS}", content.getvalue())
    result = {"accuracy": accuracy, "accuracy_before": before, "started_from": earlier[-1] if earlier else "nothing"}
    Path(os.environ["YTF_RESULT_FILE"]).write_text(json.dumps(result))
    digits.log.info("done: %s", result)


if __name__ == "__main__":
    main()
