"""The programs that travel to the cluster: the coordinator in Skein's application master, an agent in each container.

Both come from one zip of this folder, use only the standard library, and never import another room.
"""
