"""Show the curves of a Keras training on the job's page.

ytf-submit --wait -r worker:1 -s examples/metrics/train.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os

import keras
import numpy as np


class Metrics(keras.callbacks.Callback):
    """Append the metrics of every hundredth batch to YTF_METRICS_FILE."""

    def on_train_batch_end(self, batch, logs=None):
        """Write one line; without the variable, for example on a laptop, write nothing."""
        step = int(self.model.optimizer.iterations.numpy())
        if step % 100 == 0:
            with open(os.environ.get("YTF_METRICS_FILE", os.devnull), "a") as file:
                file.write(json.dumps({"step": step, **{name: float(value) for name, value in logs.items()}}) + "\n")


def main():
    """Learn whether the sum of eight numbers is positive."""
    inputs = np.random.default_rng(1).normal(size=(20_000, 8)).astype("float32")
    labels = (inputs.sum(axis=1) > 0).astype("float32")
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    epochs = int(os.environ.get("EPOCHS", "3"))
    model.fit(inputs, labels, batch_size=20, epochs=epochs, verbose=2, callbacks=[Metrics()])


if __name__ == "__main__":
    main()
