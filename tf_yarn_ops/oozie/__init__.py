"""The door of Oozie: a job as an application of Oozie, and the program that Oozie's launcher runs.

In come a job, its schedule and its data sets as options of a command; out go ``workflow.xml``, ``coordinator.xml``,
``job.properties`` and the files of the job, and on a node of the cluster the properties that Oozie hands to the next
action. `contract` holds the names on which both sides agree: what `package` writes, `action` reads. This room never
schedules anything itself, and never checks the values of a job by rules of its own: `job` has them.
"""
