"""Addresses behind a gateway: which URL is asked, and which one a user sees."""

import html
import itertools
import tracemalloc
from itertools import chain
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_yarn_ops.hadoop.cluster import parse_addresses
from tf_yarn_ops.hadoop.gateway import (
    from_outside,
    is_gateway,
    log_link,
    log_page,
    node_of,
    pages,
    place,
    read_log_page,
    topology,
    tracking_page,
)
from tf_yarn_ops.runtime.common.web_address import safe_url

OWN, REST, PAGES, OTHER = (
    "http://rm:8088",
    "https://knox:8443/gateway/default/resourcemanager",
    "https://knox:8443/gateway/default/yarn",
    "https://proxy/rm",
)
ID = "application_1_0001"


@pytest.mark.parametrize(
    "address, path, url",
    [
        (OWN, "/ws/v1/cluster/info", "http://rm:8088/ws/v1/cluster/info"),
        (OWN, "/conf", "http://rm:8088/conf"),
        (REST, "/ws/v1/cluster/info", "https://knox:8443/gateway/default/resourcemanager/v1/cluster/info"),
        (REST, "/conf", "https://knox:8443/gateway/default/yarn/conf"),
        (PAGES, "/ws/v1/cluster/info", "https://knox:8443/gateway/default/yarn/ws/v1/cluster/info"),
        (PAGES, "/conf", "https://knox:8443/gateway/default/yarn/conf"),
        (OTHER, "/ws/v1/cluster/info", "https://proxy/rm/ws/v1/cluster/info"),
    ],
)
def test_a_path_of_the_resourcemanager_at_each_kind_of_address(address, path, url):
    assert place(address, path) == url


@pytest.mark.parametrize(
    "address, found, below",
    [
        (OWN, None, OWN),
        (REST, "https://knox:8443/gateway/default", PAGES),
        (PAGES, "https://knox:8443/gateway/default", PAGES),
        (OTHER, None, OTHER),
    ],
)
def test_the_topology_and_the_pages_of_an_address(address, found, below):
    assert (topology(address), pages(address), is_gateway(address)) == (found, below, address != OWN)
    assert tracking_page(address, ID) == f"{below}/proxy/{ID}/"


def test_a_tracking_url_leads_through_the_gateway():
    application = {"id": ID, "trackingUrl": f"http://inside:8088/proxy/{ID}/"}
    assert from_outside(application, OWN) == application
    assert from_outside(application, REST)["trackingUrl"] == f"{PAGES}/proxy/{ID}/"
    assert from_outside(application | {"trackingUrl": ""}, REST)["trackingUrl"] == ""


def test_the_page_of_a_log():
    assert log_page(REST, "http://node:8042", "container_1/ann/worker.log") == (
        f"{PAGES}/nodemanager/node/containerlogs/container_1/ann/worker.log?start=0&scheme=http&host=node&port=8042"
    )
    page = [b"<html><p>Log Type: x</p><pre>a &lt;b&gt; &am", b"p; c\n</pre><pre>d\n</pre></html>"]
    assert b"".join(read_log_page(page)) == b"a <b> & c\nd\n"
    assert list(read_log_page([b"<html>no log</html>"])) == []


LOG = "node/containerlogs/container_1/ann"
#: What a real Knox makes of http://node:8042/node/containerlogs/container_1/ann in an answer below /yarn.
REWRITTEN = f"{PAGES}/nodemanager/{LOG}?scheme=http&host=node&port=8042"


@pytest.mark.parametrize("given", [REWRITTEN, f"http://node:8042/{LOG}"])
def test_log_of_a_master_leads_through_the_gateway(given):
    """The node is YARN's field; what a gateway makes of the link gives only the nodes' scheme."""
    found = from_outside({"id": ID, "amContainerLogs": given, "amHostHttpAddress": "own:8044"}, PAGES)
    assert found["amContainerLogs"] == f"{PAGES}/nodemanager/{LOG}?start=0&scheme=http&host=own&port=8044"
    assert node_of(found["amContainerLogs"]) == "http://own:8044"
    inside = {"id": ID, "amContainerLogs": given, "amHostHttpAddress": "own:8044"}
    assert from_outside(inside, OWN) == inside


@pytest.mark.parametrize(
    "master, link",
    [
        ("", "https://n2:8044/node/containerlogs/container_2/ann/worker.log"),
        ("container_1", "https://n2:8044/node/containerlogs/container_2/ann/worker.log"),
        (f"http://node:8042/{LOG}", "http://n2:8044/node/containerlogs/container_2/ann/worker.log"),
        (
            REWRITTEN,
            f"{PAGES}/nodemanager/node/containerlogs/container_2/ann/worker.log?start=0&scheme=http&host=n2&port=8044",
        ),
    ],
)
def test_log_of_a_task_can_be_opened_as_that_of_the_master(master, link):
    found = log_link("https://n2:8044/node/containerlogs/container_2/ann/worker.log", master)
    assert found == link and node_of(found).endswith("n2:8044")
    assert log_link(found, master) == found


HOSTILE = st.one_of(
    st.sampled_from(
        ["", "http", "https", "javascript", "h", "[", "[::1", "a@evil", "evil/path?x=", "\r\n", "1", "999999"]
    ),
    st.text(max_size=8),
)
MASTERS = [f"http://node:8042/{LOG}", REWRITTEN, "http://[", ""]


@given(st.sampled_from(["http://h/f", f"http://h:8042/{LOG}", "http://["]), HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_link_of_others_names_a_safe_node_or_none(link, scheme, host, port, path):
    query = urlencode({"scheme": scheme, "host": host, "port": port})
    for given_link in (f"{link}?{query}", f"{scheme}://{host}:{port}/{path}", f"{link}{path}?{query}"):
        node = node_of(given_link)
        assert node == "" or (safe_url(node) == node and node == "{0.scheme}://{0.netloc}".format(urlsplit(node)))
        for master in MASTERS[:2]:
            found = log_link(given_link, master)
            assert safe_url(found) == found and (found == "") == (node == "")
        assert all(log_link(given_link, master) == given_link for master in MASTERS[2:])
        for address in (OWN, PAGES):
            from_outside({"id": ID, "amContainerLogs": given_link, "amHostHttpAddress": f"{host}:{port}"}, address)


@pytest.mark.parametrize(
    "typed, url",
    [
        ("https://knox:8443/gateway/default/yarn/", PAGES),
        (REST, REST),
        ("http://rm:8088/cluster/apps", OWN),
        ("http://rm:8088/", OWN),
        ("http://rm:8088/ws/v1/cluster", OWN),
        ("http://rm:8088/ui2/index.html", OWN),
    ],
)
def test_an_address_keeps_the_path_of_a_gateway_only(typed, url):
    assert parse_addresses(typed) == (url,)


LINES = ('first <b> & "second"\n', "\u00fc\u20ac \U0001f600 &amp;\n", "&", "<", "</pr", "")


@given(st.lists(st.sampled_from(LINES), max_size=6), st.integers(1, 9))
def test_log_of_a_page_is_the_same_however_the_page_is_cut(lines, size):
    log = "".join(lines)
    page = f"<html><p>x<pre>{html.escape(log)}</pre><pr</p></html>".encode()
    parts = [page[at : at + size] for at in range(0, len(page), size)]
    assert b"".join(read_log_page(parts)).decode() == log


@pytest.mark.parametrize("piece", [b"x" * 65536, b"&" * 65536, b"<" * 65536, b"\xff" * 65536, b"<pre></pre>" * 600])
def test_log_of_a_page_without_end_comes_piece_by_piece(piece):
    """The whole page was joined first."""
    taken = itertools.count()
    pages = chain([b"<pre>"], (piece for _ in iter(lambda: next(taken), 50)))
    tracemalloc.start()
    for _ in read_log_page(pages):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert next(taken) == 51 and peak < 1_500_000
    assert list(read_log_page([b"<p>no log", b"</p>"])) == []
