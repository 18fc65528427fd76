"""Two workers find the line y = 3x + 2 together; worker 0 saves the model and reports the metrics."""

import json
import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()  # reads TF_CONFIG
with strategy.scope():
    slope = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
    offset = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)


def step_of_one_worker():
    x = tf.random.uniform([64], -1, 1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((slope * x + offset - (3 * x + 2)) ** 2)
    slope_gradient, offset_gradient = tape.gradient(loss, (slope, offset))
    slope.assign_sub(0.2 * slope_gradient)  # the mean over the workers
    offset.assign_sub(0.2 * offset_gradient)
    return loss


step = tf.function(lambda: strategy.run(step_of_one_worker))
for number in range(1, 201):
    loss = step()
    if number % 50 == 0:
        print(f"step {number}: loss {loss.numpy():.6f}", flush=True)


class Line(tf.Module):
    def __init__(self):
        self.slope, self.offset = tf.Variable(slope.numpy()), tf.Variable(offset.numpy())

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def __call__(self, x):
        return self.slope * x + self.offset


if os.environ["DTF_TASK_INDEX"] == "0":
    tf.saved_model.save(Line(), os.environ["DTF_OUTPUT_PATH"])
    with open(os.environ["YTF_RESULT_FILE"], "w") as file:
        json.dump({"slope": float(slope.numpy()), "offset": float(offset.numpy())}, file)
