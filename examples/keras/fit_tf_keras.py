"""Train with ``model.fit`` of tf_keras in several workers, and go on from the last epoch after a restart.

ytf-submit --wait --env TF_USE_LEGACY_KERAS=1 --restart cluster -r worker:2 -o hdfs:///models/signs \
    -s examples/keras/fit_tf_keras.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os

import numpy as np
import tensorflow as tf


class Metrics(tf.keras.callbacks.Callback):
    """Draw the curves of the job's page."""

    def on_epoch_end(self, epoch, logs=None):
        """Write one line for each epoch."""
        with open(os.environ["YTF_METRICS_FILE"], "a") as file:
            file.write(json.dumps({"epoch": epoch, **{name: float(value) for name, value in logs.items()}}) + "\n")


def main():
    """Learn whether the sum of eight numbers is positive; each worker takes its part of every batch."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # first of all: it starts TensorFlow's server
    writes = int(os.environ["DTF_TASK_INDEX"]) == 0
    output = os.environ["DTF_OUTPUT_PATH"]
    inputs = np.random.default_rng(1).normal(size=(4096, 8)).astype("float32")
    labels = (inputs.sum(axis=1) > 0).astype("int64")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    data = tf.data.Dataset.from_tensor_slices((inputs, labels)).repeat().batch(64).with_options(options)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu", input_shape=(8,)), tf.keras.layers.Dense(2)])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
    # Every worker has the callback; it writes into a folder of its own for all but the chief.
    callbacks = [tf.keras.callbacks.BackupAndRestore(f"{output}/backup"), *([Metrics()] if writes else [])]
    trained = model.fit(
        data, epochs=int(os.environ.get("EPOCHS", "10")), steps_per_epoch=64, callbacks=callbacks, verbose=2
    )
    # To save is an operation of all workers: each has its own path, and only the first one counts.
    model.save(f"{output}/model" if writes else f"{output}/unused-{os.environ['DTF_TASK_INDEX']}")
    if writes:
        result = {"accuracy": float(trained.history["accuracy"][-1]), "first_epoch": trained.epoch[0]}
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
