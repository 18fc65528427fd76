"""Fit a line with DTensor on a mesh of all workers' devices; client 0 writes the result.

ytf-submit --wait -r worker:2 -s examples/tensorflow/dtensor.py 'python ${DTF_TASK_SCRIPT}'
"""

import json
import os

import tensorflow as tf

dtensor = tf.experimental.dtensor


def main():
    """Each client draws batches of its own; the gradients are those of all of them."""
    device = dtensor.initialize_accelerator_system()  # reads DTENSOR_JOBS, DTENSOR_CLIENT_ID, DTENSOR_JOB_NAME
    mesh = dtensor.create_distributed_mesh([("data", dtensor.num_global_devices(device))], device_type=device)
    split, everywhere = dtensor.Layout(["data", dtensor.UNSHARDED], mesh), dtensor.Layout.replicated(mesh, rank=2)
    weights = dtensor.DVariable(dtensor.call_with_layout(tf.zeros, everywhere, [2, 1]))
    tf.random.set_seed(dtensor.client_id())

    def share(batch):
        return dtensor.pack(tf.split(batch, dtensor.num_local_devices(device)), split)

    @tf.function
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ weights - labels) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(100):
        inputs = tf.random.normal([8 * dtensor.num_local_devices(device), 2])
        step(share(inputs), share(inputs @ [[1.0], [2.0]]))
    found = dtensor.unpack(weights.read_value())[0].numpy()
    if dtensor.client_id() == 0:
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"weights": found.ravel().round(3).tolist(), "clients": dtensor.num_clients()}, file)


if __name__ == "__main__":
    main()
