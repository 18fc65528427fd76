"""What travels to the cluster: the coordinator in Skein's application master, one agent in every container.

Both come from one zip that is made from this folder: standard library only, no import of the other rooms.
"""
