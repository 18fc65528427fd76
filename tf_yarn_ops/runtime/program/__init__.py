"""What a user's program finds in its container without asking: ``hdfs://`` in fsspec, PyArrow and TensorFlow.

`sitecustomize` is the way in; each other module is loaded when the program imports the library that it serves.
"""
