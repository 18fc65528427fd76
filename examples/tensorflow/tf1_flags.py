"""Fit a line as programs of TensorFlow 1 do: cluster and task by flags, variables on the ps, a monitored session.

ytf-submit --wait -r worker:2,ps:1 -s examples/tensorflow/tf1_flags.py 'python ${DTF_TASK_SCRIPT} \\
    --ps_hosts $DTF_PS_HOSTS --worker_hosts $DTF_WORKER_HOSTS \\
    --job_name $DTF_TASK_JOB_NAME --task_index $DTF_TASK_INDEX'
"""

import argparse
import json
import os

import tensorflow.compat.v1 as tf


def read_flags():
    """Return the flags; the job's variables have the form that they expect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ps_hosts", required=True, type=lambda text: text.split(","))
    parser.add_argument("--worker_hosts", required=True, type=lambda text: text.split(","))
    parser.add_argument("--job_name", required=True, choices=("ps", "worker"))
    parser.add_argument("--task_index", required=True, type=int)
    return parser.parse_args()


def main():
    """Serve the variables, or train; worker 0 is the chief."""
    flags = read_flags()
    tf.disable_eager_execution()
    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts, "worker": flags.worker_hosts})
    server = tf.train.Server(cluster, job_name=flags.job_name, task_index=flags.task_index)
    if flags.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        weights = tf.get_variable("weights", [2, 1], initializer=tf.zeros_initializer())
        inputs = tf.random.normal([16, 2])
        loss = tf.reduce_mean((inputs @ weights - inputs @ [[1.0], [2.0]]) ** 2)
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=400)]
    # Without the filters a session waits for every other worker, also for one that has ended.
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{flags.task_index}"])
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief=flags.task_index == 0, hooks=hooks, config=config
    ) as session:
        while not session.should_stop():
            _, found = session.run((train, weights))
    if flags.task_index == 0:
        with open(os.environ["YTF_RESULT_FILE"], "w") as file:
            json.dump({"weights": found.ravel().round(3).tolist(), "workers": len(flags.worker_hosts)}, file)


if __name__ == "__main__":
    main()
