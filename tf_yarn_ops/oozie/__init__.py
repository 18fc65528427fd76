"""The door of Oozie: jobs packed as an application of Oozie, and the program that Oozie's launcher runs.

`package` turns jobs, their schedule and their data sets into ``workflow.xml``, ``coordinator.xml``, ``job.properties``
and the files of the jobs. On a node, `action` trains and prints properties for the next action. Both sides agree on the
names in `packed_job`. This room schedules nothing itself, and leaves the rules for the values of a job to `job`.
"""
