"""Distributed TensorFlow on YARN, for workflow engines: one core, thin doors."""

__version__ = "0.1.0"
