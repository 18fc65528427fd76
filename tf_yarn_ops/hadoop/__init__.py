"""Access to a cluster: its configuration, its ResourceManagers, its file system, and the user of a request.

In come an address, the environment and the site file; out go a `Cluster`, a `ResourceManager` client and a
`FileSystem`. This room never looks at a job, and never decides about an application.
"""
