"""The Azkaban jobtype: the properties of a ``.job`` become a job on YARN, its report becomes output properties.

Azkaban starts ``python -I -X utf8 -m tf_yarn_ops.azkaban`` for each job: `properties`
reads what it hands over, `keys` and `tony` name it, `request` makes a job of it,
`jobtype` runs it, `outputs` tells the jobs downstream. `install` puts the plugin where
Azkaban looks for it.
"""
