"""Train the digits with MultiWorkerMirroredStrategy: every worker holds the model, each step averages the gradients.

All workers leave together and exit 0. None can go on without another: restart such a job as a whole (`cluster`).
"""

import os
import time

import digits
import tensorflow as tf


def main():
    digits.configure_logging()
    options = digits.parse_options(__doc__)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # first of all: it starts TensorFlow's server
    resolver = strategy.cluster_resolver
    writes = resolver.task_type == "chief" or (resolver.task_id == 0 and "chief" not in resolver.cluster_spec().jobs)
    data = digits.load_digits(os.environ["DTF_INPUT_PATH"])
    with strategy.scope():
        model = digits.build_model()
        optimizer = digits.build_optimizer(model, options.learning_rate)

    def worker_batches(context):
        own = slice(context.input_pipeline_id, None, context.num_input_pipelines)
        batch_size = context.get_per_replica_batch_size(options.batch_size)
        return digits.batches(data.train_images[own], data.train_labels[own], batch_size)

    batches = iter(strategy.distribute_datasets_from_function(worker_batches))

    @tf.function
    def train_step(iterator):
        def replica_step(images, labels):
            with tf.GradientTape() as tape:
                per_image = digits.losses(model, images, labels)
                loss = tf.nn.compute_average_loss(per_image, global_batch_size=options.batch_size)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

        strategy.run(replica_step, args=next(iterator))

    record = digits.Record(model, optimizer, data, writes=writes)
    for step in range(record.resume() + 1, options.steps + 1):
        train_step(batches)
        time.sleep(options.step_delay)
        if step % options.checkpoint_steps == 0 or step == options.steps:
            record.save(step)
    record.finish()


if __name__ == "__main__":
    main()
