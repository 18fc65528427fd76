"""Read the test images with a trained model, and write what it saw in each: inference on a cluster, in one task.

python predict.py MODEL, where MODEL is the folder that a training exported.
"""

import argparse
import json
import logging
import os
from pathlib import Path

import digits
import numpy as np
import tensorflow as tf

log = logging.getLogger("predict")


def main():
    digits.configure_logging()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a path, or an hdfs:// or s3:// URL")
    url = parser.parse_args().model
    model = tf.saved_model.load(digits.open_place(url)[0])
    data = digits.load_digits(os.environ["DTF_INPUT_PATH"])
    seen = np.argmax(model.serve(data.test_images), axis=1)
    output, push = digits.open_place(os.environ["DTF_OUTPUT_PATH"].rstrip("/"))
    digits.write_file(f"{output}/predictions.csv", "".join(f"{digit}\n" for digit in seen).encode())
    push()
    result = {"predictions": len(seen), "accuracy": float(np.mean(seen == data.test_labels)), "model": url}
    if os.environ.get("YTF_RESULT_FILE"):
        Path(os.environ["YTF_RESULT_FILE"]).write_text(json.dumps(result))
    log.info("done: %s", json.dumps(result))


if __name__ == "__main__":
    main()
