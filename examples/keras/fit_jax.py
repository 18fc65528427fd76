"""Train with ``model.fit`` of Keras 3 on JAX in several processes, and go on from the last epoch after a restart.

ytf-submit --wait --framework jax --env KERAS_BACKEND=jax --restart cluster -r worker:2 -o /shared/models/signs \
    -s examples/keras/fit_jax.py 'python ${DTF_TASK_SCRIPT}'

All nodes see the output path as a folder.
"""

import glob
import json
import os

import jax
import numpy as np

# Before Keras is imported: it asks for the devices.
jax.distributed.initialize()
import keras  # noqa: E402

RANK = jax.process_index()
OUTPUT = os.environ["DTF_OUTPUT_PATH"]


def save(model, name):
    """Save the model: an operation of all processes, of which the first one's file appears whole."""
    path = f"{OUTPUT}/{name}.keras"
    passing = f"{OUTPUT}/.passing-{RANK}.keras"
    model.save(passing)
    if RANK == 0:
        os.replace(passing, path)
    else:
        os.remove(passing)


class Checkpoint(keras.callbacks.Callback):
    """Save after each epoch, on every process; write the curves of the job's page on the first one."""

    def on_epoch_end(self, epoch, logs=None):
        """Save under the number of the next epoch."""
        save(self.model, f"epoch-{epoch + 1:04d}")
        if RANK == 0:
            with open(os.environ["YTF_METRICS_FILE"], "a") as file:
                file.write(json.dumps({"epoch": epoch, **{name: float(value) for name, value in logs.items()}}) + "\n")


def build_model():
    """Return a new model."""
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def main():
    """Learn whether the sum of eight numbers is positive; each process has data of its own."""
    keras.utils.set_random_seed(1)  # the same first weights everywhere
    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    os.makedirs(OUTPUT, exist_ok=True)
    saved = sorted(glob.glob(f"{OUTPUT}/epoch-*.keras"))
    model = keras.saving.load_model(saved[-1]) if saved else build_model()
    first = int(saved[-1][-10:-6]) if saved else 0
    inputs = np.random.default_rng(RANK).normal(size=(2048, 8)).astype("float32")
    labels = (inputs.sum(axis=1) > 0).astype("int64")
    epochs = int(os.environ.get("EPOCHS", "10"))
    trained = model.fit(
        inputs, labels, batch_size=32, initial_epoch=first, epochs=epochs, callbacks=[Checkpoint()], verbose=2
    )
    save(model, "model")
    if RANK == 0:
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"accuracy": float(trained.history["accuracy"][-1]), "first_epoch": first}, file)


if __name__ == "__main__":
    main()
