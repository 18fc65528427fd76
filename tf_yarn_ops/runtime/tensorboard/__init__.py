"""TensorBoard: its task in the cluster, the front before it, the copies of event files that it reads.

``ytf tensorboard`` and ``ytf ui`` use the copies too.
"""
