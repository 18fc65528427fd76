"""Fit a line with ParameterServerStrategy as TensorFlow's tutorial does: workers and ps start their own servers.

ytf-submit --wait --success chief -r chief:1,worker:2,ps:1 -s examples/tensorflow/parameter_server.py \
    'python ${DTF_TASK_SCRIPT}'

The servers never end by themselves: with ``--success chief`` the job ends with the chief, and ends them.
"""

import json
import os

import tensorflow as tf


def serve(resolver):
    """Serve the chief until the job ends."""
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()


def train(resolver):
    """Give out the steps to the workers; the weights are on the ps."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = tf.Variable(tf.zeros([2, 1]))

    def make_dataset():
        inputs = tf.random.normal([512, 2])
        return tf.data.Dataset.from_tensor_slices((inputs, inputs @ [[1.0], [2.0]])).repeat().batch(16)

    batches = iter(coordinator.create_per_worker_dataset(make_dataset))

    @tf.function
    def step(iterator):
        inputs, labels = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ weights - labels) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(100):
        coordinator.schedule(step, args=(batches,))
    coordinator.join()
    workers = resolver.cluster_spec().num_tasks("worker")
    with open(os.environ["YTF_RESULT_FILE"], "w") as file:
        json.dump({"weights": weights.numpy().ravel().round(3).tolist(), "workers": workers}, file)


def main():
    """Serve or train, by the task that TF_CONFIG names."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        train(resolver)


if __name__ == "__main__":
    main()
