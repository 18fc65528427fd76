"""What travels to the cluster: standard library only, imports nothing of the rest.

The coordinator runs in Skein's application master, one agent in every
container; both come from one zip that is made from this folder.
"""
