"""Train with ``model.fit`` of Keras 3 on PyTorch in several processes, and go on from the last epoch after a restart.

ytf-submit --wait --framework pytorch --env KERAS_BACKEND=torch --restart cluster -r worker:2 -o /shared/models/signs \
    -s examples/keras/fit_torch.py 'python ${DTF_TASK_SCRIPT}'

All nodes see the output path as a folder. ``keras.distribution`` does not serve PyTorch, so the optimizer averages the
gradients.
"""

import glob
import json
import os

import keras
import numpy as np
import torch

OUTPUT = os.environ["DTF_OUTPUT_PATH"]


@keras.saving.register_keras_serializable()
class AveragingAdam(keras.optimizers.Adam):
    """Adam on the mean of the gradients of all processes; each process must take the same number of steps."""

    def apply(self, grads, trainable_variables=None):
        """Average the gradients, then update the weights."""
        for gradient in grads:
            torch.distributed.all_reduce(gradient)
            gradient /= torch.distributed.get_world_size()
        return super().apply(grads, trainable_variables)


def save(model, name):
    """Save the model, which is the same on all processes; the file appears whole."""
    passing = f"{OUTPUT}/.passing.keras"
    model.save(passing)
    os.replace(passing, f"{OUTPUT}/{name}.keras")


class Checkpoint(keras.callbacks.Callback):
    """Save after each epoch, and write the curves of the job's page, on the first process."""

    def on_epoch_end(self, epoch, logs=None):
        """Save under the number of the next epoch."""
        save(self.model, f"epoch-{epoch + 1:04d}")
        with open(os.environ["YTF_METRICS_FILE"], "a") as file:
            file.write(json.dumps({"epoch": epoch, **{name: float(value) for name, value in logs.items()}}) + "\n")


def build_model():
    """Return a new model."""
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(AveragingAdam(), loss, metrics=["accuracy"])
    return model


def main():
    """Learn whether the sum of eight numbers is positive; each process has data of its own."""
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = torch.distributed.get_rank()
    os.makedirs(OUTPUT, exist_ok=True)
    saved = sorted(glob.glob(f"{OUTPUT}/epoch-*.keras"))
    # Another process may see an older folder: the first one names the file.
    chosen = [saved[-1] if saved else None]
    torch.distributed.broadcast_object_list(chosen)
    keras.utils.set_random_seed(1)  # the same first weights everywhere
    model = keras.saving.load_model(chosen[0]) if chosen[0] else build_model()
    first = int(chosen[0][-10:-6]) if chosen[0] else 0
    inputs = np.random.default_rng(rank).normal(size=(2048, 8)).astype("float32")
    labels = (inputs.sum(axis=1) > 0).astype("int64")
    epochs = int(os.environ.get("EPOCHS", "10"))
    callbacks = [Checkpoint()] if rank == 0 else []
    trained = model.fit(
        inputs, labels, batch_size=32, initial_epoch=first, epochs=epochs, callbacks=callbacks, verbose=2
    )
    if rank == 0:
        save(model, "model")
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"accuracy": float(trained.history["accuracy"][-1]), "first_epoch": first}, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
