"""The live report of a running job, through its tracking URL."""

import json

import pytest

from support.fake_yarn import application
from support.place import ID, USER
from tf_yarn_ops.runtime.common.reasons import Reason
from tf_yarn_ops.runtime.common.report import JobReport, Round, TaskReport
from tf_yarn_ops.runtime.common.status import APPLICATION_HEADER


def test_the_live_report_comes_through_the_tracking_url(place):
    live = JobReport(ID, message="1 of 2 tasks run.", tasks=(TaskReport("worker:0", "running"),))
    document = live.to_dict() | {"cluster_spec": {"worker": ["a:1", "b:2"]}}
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    launcher = place.launcher()
    assert launcher.report(ID).message == "1 of 2 tasks run."
    asked = [parameters for _, path, parameters, _, _ in place.yarn.requests if path.endswith("/status.json")]
    assert [parameters.get("only") for parameters in asked] == ["report"]  # the rest is large for many tasks
    assert launcher.cluster_spec(ID) == {"worker": ["a:1", "b:2"]}


def test_cluster_spec_of_another_round_is_none(place):
    """A page may be half a second older than the report that names the round."""
    live = JobReport(ID, rounds=(Round(1, 5.0, ""),))
    document = live.to_dict() | {"cluster_spec": {"worker": ["a:1"]}}
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    specs = [place.launcher().cluster_spec(ID, number) for number in (1, 2, None)]
    assert specs == [{"worker": ["a:1"]}, None, {"worker": ["a:1"]}]


@pytest.mark.parametrize(
    "kind, text",
    [
        ("text/html", "<html>"),
        ("application/json", "{"),
        ("application/json", "[]"),
        ("application/json", '{"schema": 99, "application_id": "x"}'),
    ],
)
def test_without_a_live_report_yarns_words_are_given(place, kind, text):
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = (kind, text)
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    report = place.launcher().report(ID)
    assert (report.state, report.tasks) == ("RUNNING", ())
    assert place.launcher().cluster_spec(ID) is None


@pytest.mark.parametrize("charset", ["hex", "zlib", "uu", "idna", "rot13", "undefined", "punycode"])
def test_charset_of_a_page_stops_no_reader_and_no_kill(place, charset):
    """Python has codecs that are no charsets: they raise any error, or take seconds."""
    kind = f"text/plain; charset={charset}"
    place.yarn.faults.append(
        lambda method, path: (401, {"Content-Type": kind}, "zz") if "/pages/ytf/" in path else None
    )
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    launcher = place.launcher()
    assert launcher.report(ID).state == "RUNNING"
    assert [job.application_id for job in launcher.list(alerts=True)] == [ID]
    assert launcher.session.live.fetch_log(place.yarn.apps[ID], "worker:0") is None
    assert launcher.kill(ID, "enough").reason is Reason.KILLED


OTHER = ID.replace("_0001", "_0002")


@pytest.mark.parametrize("path", ["/proxy/{other}/", "/proxy/x/../{other}/", "/proxy/application%5F{digits}/"])
def test_page_of_another_application_is_not_read(place, path):
    """YARN shows what the user of an unmanaged application registers; a team's page may see all jobs."""
    document = JobReport(OTHER, message="secret", tasks=(TaskReport("worker:0", "running"),)).to_dict()
    place.yarn.pages[f"/proxy/{OTHER}/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    place.yarn.pages[f"/proxy/{OTHER}/pages/ytf/log.txt"] = ("text/plain", "secret")
    at = path.format(other=OTHER, digits=OTHER.removeprefix("application_"))
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}{at}"))
    live, app = place.launcher().session.live, place.yarn.apps[ID]
    assert live.fetch(app) is None and live.fetch_log(app, "worker:0") is None
    assert not any(OTHER in path for _, path, *_ in place.yarn.requests)


def test_page_that_redirects_to_another_application_is_not_read(place):
    where = {"Location": f"{place.url}/proxy/{OTHER}/pages/ytf/log.txt"}
    place.yarn.faults.append(lambda method, path: (302, where, "") if path.startswith("/proxy/x/") else None)
    place.yarn.pages[f"/proxy/{OTHER}/pages/ytf/log.txt"] = ("text/plain", "secret")
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    live = place.launcher().session.live
    assert live.fetch_log(place.yarn.apps[ID], "worker:0") is None


def test_document_of_another_application_is_not_believed(place):
    document = JobReport(OTHER, message="secret", tasks=(TaskReport("worker:0", "running"),)).to_dict()
    place.yarn.pages["/proxy/x/pages/ytf/status.json"] = ("application/json", json.dumps(document))
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    assert place.launcher().report(ID).tasks == ()


LOG, STATUS = "pages/ytf/log.txt", "pages/ytf/status.json"


@pytest.mark.parametrize("named", [None, OTHER, "", f"{ID},{OTHER}"])
def test_log_counts_only_if_it_names_its_application(place, caplog, named):
    """A page may lead elsewhere between two requests, and a coordinator's own address has no application id."""
    document = JobReport(ID, tasks=(TaskReport("worker:0", "running"),)).to_dict()
    place.yarn.pages[f"/direct/{STATUS}"] = ("application/json", json.dumps(document))
    headers = [] if named is None else [(APPLICATION_HEADER, named)]
    place.yarn.pages[f"/direct/{LOG}"] = ("text/plain", "secret", *headers)
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/direct/"))
    live = place.launcher().session.live
    for _ in range(2):
        assert live.fetch_log(place.yarn.apps[ID], "worker:0") is None
    assert [ID in record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [True]


def test_document_that_names_no_application_is_not_believed(place):
    document = {**JobReport(ID, tasks=(TaskReport("worker:0"),)).to_dict(), "application_id": None}
    for absent in (document, {name: value for name, value in document.items() if name != "application_id"}):
        place.yarn.pages[f"/proxy/x/{STATUS}"] = ("application/json", json.dumps(absent))
        place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
        live = place.launcher().session.live
        assert live.fetch(place.yarn.apps[ID]) is live.fetch_document(place.yarn.apps[ID]) is None


def redirect(place, target):
    """Let the page of the application redirect; the place that it names has documents of the application."""
    document = JobReport(ID, tasks=(TaskReport("worker:0", "running"),)).to_dict()
    place.yarn.pages[f"/active/{STATUS}"] = ("application/json", json.dumps(document))
    place.yarn.pages[f"/active/{LOG}"] = ("text/plain", "step 1", (APPLICATION_HEADER, ID))

    def answer(method, path):
        own = path.startswith("/proxy/x/")
        return (302, {"Location": path.replace("/proxy/x/", target)}, "") if own else None

    place.yarn.faults.append(answer)
    place.yarn.add(application(1, user=USER, trackingUrl=f"{place.url}/proxy/x/"))
    return place.launcher().session.live, place.yarn.apps[ID]


def test_log_is_read_where_the_page_redirects_to(place):
    """The standby ResourceManager redirects to the active one."""
    live, app = redirect(place, f"{place.url}/active/")
    assert live.fetch_log(app, "worker:0") == "step 1" and live.fetch(app).tasks


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "127.0.0.1.nip.io", "x@localhost"])
def test_page_that_redirects_to_a_foreign_host_is_not_followed(place, host):
    live, app = redirect(place, f"{place.url.replace('127.0.0.1', host)}/active/")
    assert live.fetch(app) is live.fetch_log(app, "worker:0") is None
    assert not place.yarn.count("GET", "/active/")


def test_hop_over_the_page_of_another_application_is_not_made(place):
    live, app = redirect(place, f"{place.url}/proxy/{OTHER}/")
    place.yarn.faults.append(
        lambda method, path: (302, {"Location": f"{place.url}/active/{STATUS}"}, "") if OTHER in path else None
    )
    assert live.fetch(app) is None and not place.yarn.count("GET", f"/proxy/{OTHER}/")
