"""Who we are to a cluster, and the proof: Kerberos tickets, gateway logins, delegation tokens.

Secrets go to the configured addresses only (`origin`), and never into a log or a message.
"""
