"""ytf oozie: pack, upload, check and start."""

import os
import re
import subprocess
from xml.etree import ElementTree

import pytest

from support.oozie_package import ADDRESSES, FLOW, cluster, oozie, run
from support.programs import ROOT, YTF
from tf_yarn_ops.oozie import commands


def test_packing_without_a_cluster_takes_the_user_of_hadoop(place):
    assert (
        "appPath=hdfs://nn:8020/user/alice/oozie/"
        in run("package", "job.yaml", "--dry-run", *ADDRESSES, HADOOP_USER_NAME="alice").stdout
    )


def test_a_dry_run_writes_nothing_and_faults_come_together(place):
    shown = run("package", "job.yaml", "--dry-run", *ADDRESSES)
    assert (
        shown.returncode == 0
        and shown.stdout.startswith("# workflow.xml\n<?xml")
        and "# job.properties" in shown.stdout
    )
    refused = run(
        "package", "job.yaml", "--frequency", "often", "--name-node", "namenode", "--resource-manager", "rm:8032"
    )
    assert "\n  - name_node: 'namenode' is not the URL of a file system; give hdfs://host:8020" in refused.stderr
    assert refused.returncode == 2 and "\n  - out: missing; give a folder of this machine" in refused.stderr
    assert "\n  - frequency: 'often' is not a frequency" in refused.stderr
    assert not {"app", "workflow.xml"} & {path.name for path in place.iterdir()}


def sent(request):
    return {pair.findtext("name"): pair.findtext("value") for pair in ElementTree.fromstring(request[2])}


def test_run_uploads_checks_and_starts_and_prints_the_id(place):
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie() as (server, seen):
        packed = run(
            "package",
            "job.yaml",
            "--frequency",
            "1d",
            "--out",
            "app",
            "--app-path",
            "/apps/digits",
            "--property",
            "rate=0.1",
            YTF_RESOURCEMANAGER=url,
        )
        assert packed.returncode == 0, packed.stderr
        started = run(
            "run", "app", "--property", "rate=0.2", "--user", "root", YTF_RESOURCEMANAGER=url, OOZIE_URL=server
        )
        assert (started.returncode, started.stdout) == (0, "0000001-oozie-C\n"), started.stderr
        (version,) = (files / "apps" / "digits").iterdir()
        assert {path.name for path in version.iterdir()} == {path.name for path in (place / "app").iterdir()}
        assert oct((version / "job.yaml").stat().st_mode)[-3:] == "640"
        where = f"viewfs://mini/apps/digits/{version.name}"
        for folder in (where, "app"):
            again = run("run", folder, "--oozie", server, YTF_RESOURCEMANAGER=url)
            assert again.returncode == 0, again.stderr
        assert f"{where} has this application already" in again.stderr

        run(
            "package",
            "job.yaml",
            "--frequency",
            "1d",
            "--out",
            "app",
            "--app-path",
            "/apps/digits",
            YTF_RESOURCEMANAGER=url,
        )
        assert run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url).returncode == 0
        assert len([*(files / "apps" / "digits").iterdir()]) == 2
    workflow, coordinator, start = seen[:3]
    assert "action=dryrun" in workflow[0] and "action=dryrun" in coordinator[0] and "action" not in start[0]
    assert "oozie.coord.application.path" not in sent(workflow) and sent(workflow)["nominalStamp"] == "1"
    assert start[0].startswith("/oozie/v2/jobs?user.name=") and start[1]["Content-Type"].startswith("application/xml")
    assert sent(start)["oozie.coord.application.path"] == sent(start)["appPath"] == where
    assert (sent(start)["rate"], sent(start)["resourceManager"], sent(start)["oozie.use.system.libpath"]) == (
        "0.2",
        "rm:8032",
        "true",
    )
    assert "user.name" in sent(start) and sent(seen[5])["rate"] == "0.2" and sent(seen[8])["rate"] == "0.1"


def test_package_writes_into_the_cluster_itself(place):
    with cluster(place) as url, oozie() as (server, seen):
        packed = run("package", "job.yaml", "--out", "viewfs:///apps/digits", YTF_RESOURCEMANAGER=url)
        (version,) = (place / "apps" / "digits").iterdir()
        where = f"viewfs://mini/apps/digits/{version.name}"
        assert packed.returncode == 0 and f"next: ytf oozie run {where}\n" in packed.stderr, packed.stderr
        assert run("run", where, "--oozie", server, YTF_RESOURCEMANAGER=url).returncode == 0
    assert "action=start" in seen[1][0] and sent(seen[1])["oozie.wf.application.path"] == where


def coordinator(start, end):
    return {"coordJobId": "0000009-oozie-C", "startTime": start, "endTime": end}


@pytest.mark.parametrize(("others", "options", "code"), [
    ([coordinator("Sat, 21 Nov 2026 02:00:00 GMT", "Thu, 31 Dec 2099 00:00:00 GMT")], [], 2),
    ([coordinator("Sat, 21 Nov 2026 02:00:00 GMT", "Thu, 31 Dec 2099 00:00:00 GMT")], ["--again"], 0),
    ([coordinator("Sat, 21 Nov 2026 02:00:00 GMT", "Tue, 01 Dec 2026 02:00:00 GMT")], [], 0),
], ids=["same time", "asked for", "ends before"])  # fmt: skip
def test_second_coordinator_for_the_same_time_is_rejected(place, others, options, code):
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie(coordinators=others) as (server, seen):
        run(
            "package",
            "job.yaml",
            "--frequency",
            "1d",
            "--start",
            "2026-12-01T02:00Z",
            "--out",
            "app",
            YTF_RESOURCEMANAGER=url,
        )
        done = run("run", "app", *options, "--oozie", server, YTF_RESOURCEMANAGER=url)
    assert done.returncode == code, done.stderr
    if code:
        assert "0000009-oozie-C is a coordinator 'digits \"more\"' for the same time" in done.stderr
        assert not seen and not [*files.iterdir()]


@pytest.mark.slow
def test_second_call_while_a_coordinator_starts_is_refused(place):
    files, calls = place / "hdfs", []
    files.mkdir()

    def call(*options):
        env = {**os.environ, "YTF_SITE": "", "PYTHONPATH": str(ROOT), "YTF_RESOURCEMANAGER": url}
        calls.append(
            subprocess.run(
                [*YTF, "oozie", "run", "app", *options, "--oozie", server],
                env=env,
                text=True,
                cwd=place,
                capture_output=True,
                timeout=100,
            )
        )

    with cluster(files) as url, oozie(meanwhile=[call]) as (server, seen):
        run(
            "package",
            "job.yaml",
            "--frequency",
            "1d",
            "--out",
            "app",
            "--app-path",
            "/apps/digits",
            YTF_RESOURCEMANAGER=url,
        )
        assert run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url).returncode == 0
        claim = files / "apps" / "digits" / ".starting"
        assert len(seen) == 3 and calls[0].returncode == 2 and not claim.exists()
        assert re.search(r"/apps/digits/.starting: process \d+ on \S+ is starting this coordinator", calls[0].stderr), (
            calls[0].stderr
        )
        # A process that was killed leaves its claim.
        claim.write_text("process 1 on gone")
        call()
        call("--again")
        assert [done.returncode for done in calls] == [2, 2, 0] and not claim.exists(), calls


def test_start_without_an_answer_is_found_and_not_repeated(place):
    """Oozie has started the workflow; a repetition would train it twice."""
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie(None) as (server, seen):
        run("package", "job.yaml", "--out", "app", "--app-path", "/apps/digits", YTF_RESOURCEMANAGER=url)
        done = run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url)
        assert (done.returncode, done.stdout) == (0, "0000001-oozie-W\n"), done.stderr
        line = 'Oozie has not answered the start of digits "more", and has started it: 0000001-oozie-W'
        assert line in done.stderr and "no Oozie server answers" not in done.stderr
        starts = len(seen)
        again = run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url)
        assert again.returncode == 2 and "0000001-oozie-W runs this application" in again.stderr
        assert len(seen) == starts
        once_more = run("run", "app", "--again", "--oozie", server, YTF_RESOURCEMANAGER=url)
        assert (once_more.returncode, once_more.stdout) == (0, "0000002-oozie-W\n"), once_more.stderr


def test_start_without_an_answer_is_found_although_it_has_ended(place):
    """A short workflow ends before the client gives up, so no list of live ones has it."""
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie(None, ended=True) as (server, _):
        run("package", "job.yaml", "--out", "app", "--app-path", "/apps/digits", YTF_RESOURCEMANAGER=url)
        for number in range(1, 3):
            done = run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url)
            assert (done.returncode, done.stdout) == (0, f"000000{number}-oozie-W\n"), done.stderr


def test_start_that_may_have_happened_is_no_server_that_is_away(place):
    files = place / "hdfs"
    files.mkdir()
    with cluster(files) as url, oozie(None, starts=False) as (server, _):
        run("package", "job.yaml", "--out", "app", "--app-path", "/apps/digits", YTF_RESOURCEMANAGER=url)
        done = run("run", "app", "--oozie", server, YTF_RESOURCEMANAGER=url)
    assert (done.returncode, done.stdout) == (4, "")
    assert 'Oozie has not answered the start of digits "more", and may have started it: ' in done.stderr
    assert "next: oozie jobs -oozie $OOZIE_URL -jobtype wf -filter 'name=digits \"more\"'" in done.stderr


def test_unknown_property_is_rejected(place):
    (place / "flow.xml").write_text(FLOW.replace("ge 0.9", "ge limit"))
    run("package", "job.yaml", "--workflow", "flow.xml", "--property", "rate=1", "--out", "app", *ADDRESSES)
    done = run(
        "run",
        "app",
        "--property",
        "limit=0.9",
        "--property",
        "oozie.launcher.max.attempts=1",
        "--property",
        "rat=2",
        "--oozie",
        "http://nowhere",
    )
    assert done.returncode == 2 and done.stderr.splitlines()[0].endswith(
        "property 'rat': unknown key (did you mean 'rate'?); known: nameNode, resourceManager, appPath, "
        "oozie.wf.application.path, oozie.use.system.libpath, rate"
    ), done.stderr


def test_run_names_what_is_missing(place):
    (place / "empty").mkdir()
    done = run("run", "empty", "--property", "x")
    assert done.returncode == 2 and done.stderr.splitlines()[1:4] == [
        "  - oozie: missing; give the address of the Oozie server, http://host:11000/oozie, or set OOZIE_URL",
        "  - property: 'x' is not NAME=VALUE",
        "  - there is no job.properties in empty; ytf oozie package writes one",
    ]


def test_the_guide_names_each_option():
    guide = (ROOT / "docs" / "guides" / "oozie.md").read_text(encoding="utf-8")
    common = {"--resourcemanager", "--verbose", "-v"}
    options = {
        name
        for command in commands.oozie.commands.values()
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("-")
    }
    assert {name for name in options - common if not re.search(rf"{name}\b(?!-)", guide)} == set()
