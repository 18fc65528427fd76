"""How a cluster is reached: its configuration, its ResourceManagers, its file system, and the user of a request.

In come an address, the environment and the site file; out go a `Cluster`, a `ResourceManager` client and a
`FileSystem`. This room never looks at a job, and never decides what becomes of an application.
"""
