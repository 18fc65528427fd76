"""The gaps of a submission, in which its process can be gone, and how a program stops in them."""

#: After the step of this name.
GAPS = ["reserved", "claimed", "staging", "submitted", "marked"]
#: Part of a program that has a function ``stop(name)``.
STOP_IN_GAPS = """\
from tf_yarn_ops.launch import claims
from tf_yarn_ops.staging import staging_directory
from tf_yarn_ops.submit import rest as restsubmitter

def stop_after(owner, method, name):
    original = getattr(owner, method)
    def replaced(self, *words, **options):
        answer = original(self, *words, **options)
        stop(name)
        return answer
    setattr(owner, method, replaced)

stop_after(restsubmitter.RestSubmitter, "reserve", "reserved")
stop_after(claims.Claims, "make", "claimed")
stop_after(staging_directory.ApplicationDirectory, "make", "staging")
stop_after(restsubmitter.RestSubmitter, "submit", "submitted")
stop_after(claims.Claims, "mark_submitted", "marked")
"""
