"""Train the digits with ParameterServerStrategy: the chief gives out steps, workers compute them, ps hold the model.

The chief and the evaluator run this file, workers and ps the command ``ytf-server``. A worker may die and come back at
its address at any time.
"""

import json
import logging
import os
import sys
import time

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # the chief hears of a lost worker at once

import digits
import tensorflow as tf

log = logging.getLogger("parameter_server")

PATIENCE = 900  # seconds that the evaluator waits for the next checkpoint
POLL = 0.5  # seconds between its looks


def train(options, data):
    """Schedule the steps on free workers; a step that is lost with its worker runs on another one."""
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = digits.build_model()
        optimizer = digits.build_optimizer(model, options.learning_rate)

    def worker_batches():
        return digits.batches(data.train_images, data.train_labels, options.batch_size)

    batches = iter(coordinator.create_per_worker_dataset(worker_batches))

    @tf.function
    def train_step(iterator):
        def replica_step(images, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(digits.losses(model, images, labels))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

        strategy.run(replica_step, args=next(iterator))

    record = digits.Record(model, optimizer, data)
    for step in range(record.resume() + 1, options.steps + 1):
        coordinator.schedule(train_step, args=(batches,))
        time.sleep(options.step_delay)
        if step % options.checkpoint_steps == 0 or step == options.steps:
            coordinator.join()
            record.save(step)
    record.finish()


def evaluate(options, data):
    """Measure each checkpoint as it appears, until that of the last step; the chief knows nothing of it."""
    output = os.environ["DTF_OUTPUT_PATH"].rstrip("/")
    summaries = tf.summary.create_file_writer(f"{output}/logs/eval")
    model, step = digits.build_model(), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    seen, deadline = None, time.monotonic() + PATIENCE
    while step < options.steps:
        latest = tf.train.latest_checkpoint(f"{output}/checkpoints")
        if latest in (None, seen):
            if time.monotonic() > deadline:
                sys.exit(f"no checkpoint after {seen} in {output} within {PATIENCE} s: is the chief at work?")
            time.sleep(POLL)
            continue
        try:
            checkpoint.restore(latest).expect_partial()  # the optimizer's state is of no use here
        except tf.errors.NotFoundError:
            continue  # it has been replaced by a newer one meanwhile
        loss, accuracy = digits.measure(model, data.test_images, data.test_labels)
        with summaries.as_default(step=step):
            tf.summary.scalar("loss", loss)
            tf.summary.scalar("accuracy", accuracy)
        summaries.flush()
        measured = {"step": int(step.numpy()), "accuracy": accuracy, "loss": loss}
        digits.write_file(f"{output}/eval/accuracy.json", json.dumps(measured).encode())
        log.info("checkpoint %s: %s", latest, measured)
        seen, deadline = latest, time.monotonic() + PATIENCE


def main():
    digits.configure_logging()
    options = digits.parse_options(__doc__)
    data = digits.load_digits(os.environ["DTF_INPUT_PATH"])
    if digits.task_type() == "evaluator":
        evaluate(options, data)
    else:
        train(options, data)


if __name__ == "__main__":
    main()
