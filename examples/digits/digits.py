"""What the three trainings share: the data, the model, how it is measured, and the record that a training leaves.

Everything that a program learns about its place in the job comes from the environment that tf_yarn_ops gives it:
``TF_CONFIG`` (read by TensorFlow's own strategies), ``DTF_INPUT_PATH``, ``DTF_OUTPUT_PATH`` and ``YTF_RESULT_FILE``.
"""

import argparse
import json
import logging
import os
import tempfile
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads these three when it is imported
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # five tasks share the demo's machine; the model is small
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")

import numpy as np
import tensorflow as tf

log = logging.getLogger("digits")


class Digits(NamedTuple):
    """Images of 8 x 8 pixels as rows of 64 floats between 0 and 1, and the digit that each one shows."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def open_place(url):
    """Return what TensorFlow opens for a URL, and a function that uploads what was written there.

    A path, or ``hdfs://`` in a container of ours, is opened as it is.
    """
    if not url.startswith("s3://"):
        return url, lambda: None
    from s3_copy import S3Copy  # only who uses S3 needs boto3

    copy = S3Copy(url)
    return copy.path, copy.push


def load_digits(url):
    """The data as `prepare.py` wrote it."""
    return Digits(**load_arrays(open_place(url)[0]))


def load_arrays(place):
    """The arrays of an .npz by their names."""
    with tf.io.gfile.GFile(place, "rb") as file, np.load(BytesIO(file.read())) as arrays:
        return dict(arrays)


def write_file(place, content):
    """Write bytes to a file, whose folder is made."""
    tf.io.gfile.makedirs(os.path.dirname(place))
    with tf.io.gfile.GFile(place, "wb") as file:
        file.write(content)


def batches(images, labels, batch_size):
    """An endless dataset of shuffled batches."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return dataset.shuffle(len(images)).repeat().batch(batch_size)


def build_model():
    """A small classifier: 64 pixels in, ten scores (logits) out. Built under a strategy's scope, it is distributed."""
    return tf.keras.Sequential(
        [tf.keras.Input((64,)), tf.keras.layers.Dense(96, activation="relu"), tf.keras.layers.Dense(10)]
    )


def build_optimizer(model, learning_rate):
    """Adam, with its slots made now: a checkpoint can only restore variables that exist."""
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    optimizer.build(model.trainable_variables)
    return optimizer


def losses(model, images, labels):
    """The cross-entropy of each image."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))


def build_step(model, optimizer):
    """One step of training in this process: a function of a batch of images and labels."""

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(losses(model, images, labels))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    return train_step


def measure(model, images, labels):
    """Mean loss and accuracy of a model that lives in this process."""
    loss = float(tf.reduce_mean(losses(model, images, labels)))
    return loss, float(np.mean(np.argmax(model(images), axis=1) == labels))


def parse_options(description):
    """The options of each training's command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=600, help="train until this step, counted over all restarts")
    parser.add_argument("--batch_size", type=int, default=64, help="images of one step, over all workers")
    parser.add_argument("--learning_rate", type=float, default=0.005, help="of the optimizer, Adam")
    parser.add_argument("--checkpoint_steps", type=int, default=100, help="write a checkpoint every so many steps")
    parser.add_argument("--step_delay", type=float, default=0, help="seconds to rest after a step, to watch or disturb")
    return parser.parse_args()


def configure_logging():
    """One line an event on stderr, where YARN keeps it as the task's log; of the libraries only what is wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    for library in ("absl", "hdfs", "tensorflow"):
        logging.getLogger(library).setLevel(logging.ERROR)
    logging.getLogger("tensorflow").propagate = False  # it has a handler of its own


def task_type():
    """What this task is in the cluster; a program that is started by hand is a chief alone."""
    return json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {}).get("type", "chief")


class Record:
    """What a training leaves under ``DTF_OUTPUT_PATH``, and what it goes on from.

    ``checkpoints/`` holds the last three checkpoints, ``logs/train/`` the loss and accuracy for TensorBoard, ``model/``
    the exported model at the end. The result goes to ``YTF_RESULT_FILE``, and from there into the job's report.

    Parameters
    ----------
    model, optimizer
        They may be distributed: their state is read through their variables only.
    data : Digits
    writes : bool
        False on the tasks that must take part in saving (all workers of a MultiWorkerMirroredStrategy) though only
        one may write to the output: theirs goes to a temporary directory and is lost.
    """

    def __init__(self, model, optimizer, data, writes=True):
        self._model, self._data, self._writes = model, data, writes
        self._measured = build_model()  # a copy in this process, whatever strategy holds the original
        self._step = tf.Variable(0, dtype=tf.int64)
        self._checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=self._step)
        # Without this each ps writes its own part, to a disk that need not be the chief's.
        self._here = tf.train.CheckpointOptions(experimental_io_device=self._step.device)
        self._output, self._push = open_place(os.environ["DTF_OUTPUT_PATH"].rstrip("/"))
        written = self._checkpoints = f"{self._output}/checkpoints"
        if writes:
            self._summaries = tf.summary.create_file_writer(f"{self._output}/logs/train")
        else:
            self._discarded = tempfile.TemporaryDirectory(prefix="digits-", dir=os.getcwd())
            written = self._discarded.name
        self._manager = tf.train.CheckpointManager(self._checkpoint, written, max_to_keep=3)

    def resume(self):
        """Restore the latest checkpoint, if there is one; returns the number of steps that it has behind it."""
        latest = tf.train.latest_checkpoint(self._checkpoints)
        if latest:
            self._checkpoint.restore(latest, options=self._here).assert_consumed()
        self.resumed_from_step = int(self._step.numpy())
        log.info("start at step %s", self.resumed_from_step)
        return self.resumed_from_step

    def save(self, step):
        """Write a checkpoint and its loss and accuracy."""
        self._step.assign(step)
        self._manager.save(checkpoint_number=step, options=self._here)
        if not self._writes:
            return
        loss, accuracy = self._measure()
        with self._summaries.as_default(step=step):
            tf.summary.scalar("loss", loss)
            tf.summary.scalar("accuracy", accuracy)
        self._summaries.flush()
        self._push()
        with open(os.environ.get("YTF_METRICS_FILE", os.devnull), "a") as file:  # the curves of the job's page
            file.write(json.dumps({"step": step, "loss": loss, "accuracy": accuracy}) + "\n")
        log.info("step %s: loss %.3f, accuracy %.3f", step, loss, accuracy)

    def finish(self):
        """Export the model and write the result."""
        if not self._writes:
            return
        _, accuracy = self._measure()
        self._measured.export(f"{self._output}/model", verbose=False)
        self._push()
        steps = int(self._step.numpy())
        result = {
            "accuracy": accuracy,
            "steps": steps,
            "resumed_from_step": self.resumed_from_step,
            "model": os.environ["DTF_OUTPUT_PATH"].rstrip("/") + "/model",
        }
        if os.environ.get("YTF_RESULT_FILE"):
            Path(os.environ["YTF_RESULT_FILE"]).write_text(json.dumps(result))
        log.info("done: %s", json.dumps(result))

    def _measure(self):
        self._measured.set_weights(self._model.get_weights())
        return measure(self._measured, self._data.test_images, self._data.test_labels)
