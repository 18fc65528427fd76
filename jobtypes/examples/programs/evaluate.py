"""Measure a model that a training has exported: DTF_INPUT_PATH is the training's output folder."""

import argparse
import json
import os
import sys

sys.path.append(os.getcwd())  # YARN links each file from a directory of its own, so the script's is not enough

import digits
import numpy as np
import tensorflow as tf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="what prepare.py has written")
    data = digits.load_digits(parser.parse_args().data)
    # Not only a function of it, which would outlive its variables.
    model = tf.saved_model.load(os.environ["DTF_INPUT_PATH"].rstrip("/") + "/model")
    scores = model.serve(data.test_images)
    wrong = int(np.sum(np.argmax(scores, axis=1) != data.test_labels))
    result = {"accuracy": 1 - wrong / len(data.test_labels), "wrong": wrong, "images": len(data.test_labels)}
    with open(os.environ["YTF_RESULT_FILE"], "w", encoding="utf-8") as file:
        json.dump(result, file)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
