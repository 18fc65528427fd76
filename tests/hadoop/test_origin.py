"""A secret header goes to the configured addresses only."""

import httpx
import pytest

from tf_yarn_ops.hadoop.security.origin import closed_jar, header_options, origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://rm.example/ws/v1", "https://rm.example:443"),
        ("http://RM.example:80", "http://rm.example:80"),
        ("http://rm.example:8088/x?a=b", "http://rm.example:8088"),
        ("https://user:secret@rm.example/", "https://rm.example:443"),
        ("rm.example", "://:0"),
    ],
)
def test_origin_is_scheme_host_and_port(url, origin):
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://rm.example/ws", True),
        ("https://rm.example:443/", True),
        ("http://rm.example/ws", False),
        ("https://rm.example:8443/", False),
        ("https://nm.example/", False),
        ("https://rm.example.evil.org/", False),
    ],
)
def test_header_goes_to_its_address_only(url, sent):
    options = header_options(["https://rm.example"], "X-Token", lambda: "secret")
    with httpx.Client(
        transport=httpx.MockTransport(lambda request: httpx.Response(200, text=str(request.headers))), **options
    ) as client:
        assert ("secret" in client.get(url).text) is sent


def test_jar_takes_no_cookie():
    answer = httpx.MockTransport(lambda request: httpx.Response(200, headers={"Set-Cookie": "auth=secret"}))
    with httpx.Client(transport=answer, cookies=closed_jar()) as client:
        client.get("http://rm.example/")
        assert not list(client.cookies.jar)
