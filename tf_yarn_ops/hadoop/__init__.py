"""Access to a cluster: its configuration, its ResourceManagers, its file system, and the user of a request.

Input: an address, the environment and the site file. Output: a `Cluster`, a `ResourceManager` client and a
`FileSystem`. This room never looks at a job, and never decides about an application.
"""
