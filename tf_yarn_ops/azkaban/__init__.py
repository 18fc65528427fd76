"""The Azkaban job type, ``tensorflow-yarn``.

Input: the properties of a ``.job``, as Azkaban hands them over. Output: a job on YARN, the lines of Azkaban's log,
output properties for the jobs downstream and an exit code. The room maps keys to options and installs the job type. It
never checks the values of a job by rules of its own: `job` has the rules
for a job, and the site's limits file those for its size.

Azkaban starts ``python -I -X utf8 -m tf_yarn_ops.azkaban`` for each job: `properties` reads the file, `keys` and `tony`
know the names, `job` builds the job from a `request`, `jobtype` runs it and `outputs` writes the output properties.
`install` puts the plugin into an executor's folder.
"""
