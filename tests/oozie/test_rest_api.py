"""Answers of an Oozie server."""

import pytest

from support.oozie_package import cluster, oozie, run


@pytest.mark.parametrize(("answer", "code", "message"), [
    ((400, {"oozie-error-code": "E1021", "oozie-error-message": "E1021: no such zone"}, ""), 3,
     "Oozie refuses the application (E1021): E1021: no such zone"),
    ((401, {}, ""), 3, "Oozie refuses the application (401): HTTP 401"),
    ((404, {}, "<html>nothing here</html>"), 4, "answers, but has no Oozie: its address ends with /oozie"),
    ((500, {}, "<html>broken</html>"), 4, "/oozie answers 500: broken"),
    ((200, {}, "<html>login</html>"), 4, "/oozie answers, but not as an Oozie server: login"),
])  # fmt: skip
def test_answer_of_oozie_is_reported(place, answer, code, message):
    with cluster(place) as url, oozie(*answer) as (server, _):
        run("package", "job.yaml", "--out", "app", YTF_RESOURCEMANAGER=url)
        done = run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url)
        assert (done.returncode, done.stdout) == (code, "") and message in done.stderr, done.stderr
        assert code == 3 or done.stderr.endswith("\nnext: curl $OOZIE_URL/v1/admin/status\n")
        # A refused application is deleted again.
        assert [*place.glob("user/*/oozie/*/*")] == [] or code == 4
