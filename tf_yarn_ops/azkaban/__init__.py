"""The Azkaban job type, ``tensorflow-yarn``.

In come the properties of a ``.job``, as Azkaban hands them over; out go a job on YARN, the lines of Azkaban's log,
output properties for the jobs downstream and an exit code. This room renames keys and never judges a value by rules
of its own: the job's are in `job`, the site's in its limits file.

Azkaban starts ``python -I -X utf8 -m tf_yarn_ops.azkaban`` for each job: `properties` reads the file, `keys` and `tony`
know the names, `request` makes the job, `jobtype` runs it and `outputs` writes the output properties. `install` puts
the plugin into an executor's folder.
"""
