"""Programs that open ``hdfs://`` as their libraries let them, with nothing imported or set for it."""

#: With fsspec; the result has what it saw.
FSSPEC = """
import fsspec, json, multiprocessing, os, pickle
home = os.environ["DTF_OUTPUT_PATH"]

def main():
    with fsspec.open(home + "/a/caf\\u00e9 %41.txt", "w") as file:
        file.write("one\\n")
    files, path = fsspec.url_to_fs(home)
    with files.open(path + "/a/caf\\u00e9 %41.txt", "ab") as file:
        file.write(b"two\\n")
        file.flush()
        grown = files.cat(path + "/a/caf\\u00e9 %41.txt").decode()
        file.write(b"three")
    files.mv(path + "/a/caf\\u00e9 %41.txt", path + "/b")
    files.pipe(path + "/c", b"old")
    files.cp(path + "/b", path + "/c")
    big = os.urandom(3_000_000)
    files.pipe(path + "/big", big)
    with files.open(path + "/big") as file:
        file.seek(-10, 2)
        end = file.read()
        file.seek(1_500_000)
        ranges = end == big[-10:] and file.read(1_400_000) == big[1_500_000:2_900_000]
    listed = sorted(name[len(path) + 1:] for name in files.find(path))
    files.rm(path + "/a")
    faults = []
    for call in (lambda: files.cat(path + "/none"), lambda: files.rm(path + "/none"), lambda: files.mkdir(path),
                 lambda: files.open(path), lambda: files.rm(path), lambda: files.pipe(path + "/b/under", b"")):
        try:
            faults.append(str(call()))
        except OSError as error:
            faults.append(type(error).__name__)
    files.rm(path + "/big")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.map(pickle.loads(pickle.dumps(files)).exists, [path + "/b", path + "/a"])
    with open(os.environ["YTF_RESULT_FILE"], "w") as file:
        json.dump({"grown": grown, "text": files.cat(path + "/c").decode(), "ranges": ranges, "listed": listed,
                   "faults": faults, "spawned": spawned}, file)

if __name__ == "__main__":
    main()
"""
FSSPEC_RESULT = {
    "grown": "one\ntwo\n",
    "text": "one\ntwo\nthree",
    "ranges": True,
    "listed": ["b", "big", "c"],
    "faults": [
        "FileNotFoundError",
        "FileNotFoundError",
        "FileExistsError",
        "IsADirectoryError",
        "OSError",
        "NotADirectoryError",
    ],
    "spawned": [True, False],
}

#: With TensorFlow; it ends while a dataset reads.
TENSORFLOW = """
import json, os, tensorflow as tf
home, files = os.environ["DTF_OUTPUT_PATH"], tf.io.gfile
files.makedirs(home + "/a/b")
for mode in "w", "a":
    with files.GFile(home + "/a/x", mode) as file:
        file.write("line\\n")
files.copy(home + "/a/x", home + "/y")
files.rename(home + "/a/x", home + "/y", overwrite=True)
faults = []
for call in (lambda: files.listdir(home + "/none"), lambda: files.remove(home + "/a"), lambda: files.GFile(home + "/none").read()):
    try:
        faults.append(str(call()))
    except tf.errors.OpError as error:
        faults.append(type(error).__name__)
with tf.io.TFRecordWriter(home + "/records") as writer:
    for number in range(5000):
        writer.write(b"%05d" % number * 100)
records = tf.data.TFRecordDataset([home + "/records"] * 3, num_parallel_reads=3)

class Model(tf.Module):
    def __init__(self):
        self.weights = tf.Variable(tf.random.uniform([500, 500]))

    @tf.function(input_signature=[tf.TensorSpec([None, 500])])
    def __call__(self, x):
        return x @ self.weights

model, x = Model(), tf.ones([1, 500])
tf.saved_model.save(model, home + "/model")
same = bool(tf.reduce_all(tf.saved_model.load(home + "/model")(x) == model(x)))
checkpoints = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), home + "/checkpoints", max_to_keep=2)
total = float(tf.reduce_sum(model.weights))
for _ in range(3):
    checkpoints.save()
model.weights.assign(model.weights * 0)
checkpoints.checkpoint.restore(checkpoints.latest_checkpoint).assert_consumed()
events = tf.summary.create_file_writer(home + "/logs")
with events.as_default():
    tf.summary.scalar("loss", 1.0, step=1)
    events.flush()
    grown = files.stat(files.glob(home + "/logs/*")[0]).length
    tf.summary.scalar("loss", 0.5, step=2)
events.close()
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump({"text": files.GFile(home + "/y").read(), "top": sorted(files.listdir(home)), "faults": faults,
               "records": sum(1 for _ in records), "same": same,
               "restored": float(tf.reduce_sum(model.weights)) == total,
               "checkpoints": sorted(files.listdir(home + "/checkpoints")),
               "events": sum(1 for _ in tf.data.TFRecordDataset(files.glob(home + "/logs/*"))),
               "flushed": 0 < grown < files.stat(files.glob(home + "/logs/*")[0]).length}, file)
endless = iter(records.repeat().batch(50).prefetch(4))
next(endless)
"""
TENSORFLOW_RESULT = {
    "text": "line\nline\n",
    "top": ["a", "checkpoints", "logs", "model", "records", "y"],
    "faults": ["NotFoundError", "FailedPreconditionError", "NotFoundError"],
    "records": 15000,
    "same": True,
    "restored": True,
    "events": 3,
    "flushed": True,
    "checkpoints": [
        "checkpoint",
        "ckpt-2.data-00000-of-00001",
        "ckpt-2.index",
        "ckpt-3.data-00000-of-00001",
        "ckpt-3.index",
    ],
}

#: With Pandas and PyArrow: columns written, and read again. Other formats: examples/formats.
TABLES = """
import fsspec, json, os, pandas, pyarrow, pyarrow.dataset, pyarrow.fs
home = os.environ["DTF_OUTPUT_PATH"]
files = fsspec.filesystem("hdfs")
table = pandas.DataFrame({"x": range(100_000), "day": ["mon", "tue"] * 50_000})
table.to_parquet(home + "/table.parquet")
found = {"parquet": int(pandas.read_parquet(home + "/table.parquet", columns=["x"])["x"].sum())}
pyarrow.dataset.write_dataset(pyarrow.Table.from_pandas(table), home + "/dataset", format="parquet", partitioning=["day"],
                              existing_data_behavior="overwrite_or_ignore")
found["dataset"] = pyarrow.dataset.dataset(home + "/dataset", partitioning=["day"]).count_rows(
    filter=pyarrow.dataset.field("day") == "tue")
arrow, path = pyarrow.fs.FileSystem.from_uri(home + "/table.parquet")
found["arrow"] = [arrow.get_file_info(path).size == files.size(home + "/table.parquet"), isinstance(arrow, pyarrow.fs.FileSystem)]
with open(os.environ["YTF_RESULT_FILE"], "w") as file:
    json.dump(found, file)
"""
TABLES_RESULT = {"parquet": 4999950000, "dataset": 50000, "arrow": [True, True]}
