"""Write 10,000 points of the line y = 3x + 2 to DTF_OUTPUT_PATH, in each format that `train.py` reads."""

import os

import fastavro
import fsspec
import numpy as np
import pyarrow
import pyarrow.orc
import pyarrow.parquet
import tensorflow as tf


def main():
    path = os.environ["DTF_OUTPUT_PATH"].rstrip("/") + "/points."
    x = np.random.default_rng(1).uniform(-1, 1, 10_000).astype(np.float32)
    points = {"x": x, "y": 3 * x + 2}
    rows = [dict(zip(points, map(float, values), strict=True)) for values in zip(*points.values(), strict=True)]
    with fsspec.open(f"{path}parquet", "wb") as file:
        pyarrow.parquet.write_table(pyarrow.table(points), file)
    with fsspec.open(f"{path}orc", "wb") as file:
        pyarrow.orc.write_table(pyarrow.table(points), file)
    with fsspec.open(f"{path}avro", "wb") as file:
        fields = [{"name": name, "type": "float"} for name in points]
        fastavro.writer(file, {"type": "record", "name": "point", "fields": fields}, rows)
    with tf.io.TFRecordWriter(f"{path}tfrecord") as file:
        for row in rows:
            lists = {name: tf.train.FloatList(value=[value]) for name, value in row.items()}
            features = {name: tf.train.Feature(float_list=values) for name, values in lists.items()}
            file.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


if __name__ == "__main__":
    main()
