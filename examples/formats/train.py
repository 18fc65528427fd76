"""Fit a line to points that lie in files of TFRecord, Avro, ORC or Parquet: each format feeds a ``tf.data.Dataset``.

``hdfs://`` opens by itself: by TensorFlow for TFRecord, by fsspec for the others.
"""

import argparse
import itertools
import json
import os

import fsspec
import tensorflow as tf

COLUMNS = ("x", "y")


def read_tfrecord(path):
    """TensorFlow reads and parses."""
    features = {name: tf.io.FixedLenFeature([], tf.float32) for name in COLUMNS}
    return tf.data.TFRecordDataset(path).map(lambda record: tf.io.parse_single_example(record, features))


def read_avro(path):
    """fastavro yields rows, which go on in blocks."""
    import fastavro

    def blocks():
        with fsspec.open(path) as file:
            rows = fastavro.reader(file)
            while block := list(itertools.islice(rows, 1024)):
                yield {name: [row[name] for row in block] for name in COLUMNS}

    return from_blocks(blocks)


def read_orc(path):
    """PyArrow reads stripe by stripe, the columns that are needed."""
    import pyarrow.orc

    def blocks():
        with fsspec.open(path) as file:
            table = pyarrow.orc.ORCFile(file)
            for stripe in range(table.nstripes):
                yield to_arrays(table.read_stripe(stripe, columns=list(COLUMNS)))

    return from_blocks(blocks)


def read_parquet(path):
    """PyArrow reads batch by batch, the columns that are needed."""
    import pyarrow.parquet

    def blocks():
        with fsspec.open(path) as file:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(columns=list(COLUMNS)):
                yield to_arrays(batch)

    return from_blocks(blocks)


def to_arrays(batch):
    return {name: batch.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS}


def from_blocks(blocks):
    """A dataset of rows from a generator of columns; a file never lies in memory as a whole."""
    signature = {name: tf.TensorSpec([None], tf.float32) for name in COLUMNS}
    return tf.data.Dataset.from_generator(blocks, output_signature=signature).unbatch()


READERS = {"tfrecord": read_tfrecord, "avro": read_avro, "orc": read_orc, "parquet": read_parquet}


def train(dataset):
    """Return slope and offset after one pass."""
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)
    for rows in dataset.shuffle(1000).batch(64).prefetch(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((slope * rows["x"] + offset - rows["y"]) ** 2)
        for variable, gradient in zip((slope, offset), tape.gradient(loss, (slope, offset)), strict=True):
            variable.assign_sub(0.2 * gradient)
    return [round(float(slope), 3), round(float(offset), 3)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("formats", nargs="+", choices=READERS, help="train on each of them, from the beginning")
    found = {
        name: train(READERS[name](os.environ["DTF_INPUT_PATH"].rstrip("/") + f"/points.{name}"))
        for name in parser.parse_args().formats
    }
    with open(os.environ["YTF_RESULT_FILE"], "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
