"""`safe_url`: which URLs of others become links."""

import pytest

from tf_yarn_ops.runtime.common.web_address import safe_url

_GOOD = (
    "http://node1:8042/node/containerlogs/container_1_0001_01_000002/root",
    "https://knox.example/gateway/default/yarn/logs?a=1&b=2",
    "HTTP://[::1]:8088/",
    "http://node1",
    "http://node1?a=b@c",
    "http://node1:59999#top",
    "http://node1:65535/",
    "http://b\u00fccher.example/",
)
_BAD = (
    "",
    None,
    7,
    ["http://x"],
    "javascript:alert(1)",
    "javascript://evil.example/%0aalert(1)",
    " http://x/",
    "http://x/ y",
    "http://x/\n",
    "http://x/\x07",
    "http://x/'onmouseover='",
    'http://x/"><script>',
    "http://[",
    "http://x:port/",
    "http://x:99999/",
    "http://x:65536/",
    "http://x:590000/",
    "http\u017f://x/",
    "http://x/\u2003y",
    "http://x@y",
    "http://x:1@y/",
    "http://",
    "http://:80/",
    "http:///path",
    "http://cluster@evil.example/",
    "http://evil.example\\@cluster/",
    "ftp://x/",
    "file:///etc/passwd",
    "data:text/html,x",
    "//evil.example/",
    "http://x/" + "a" * 3000,
)


@pytest.mark.parametrize("url", _GOOD)
def test_safe_url_keeps_web_address(url):
    assert safe_url(url) == url


@pytest.mark.parametrize("url", _BAD, ids=repr)
def test_safe_url_drops_what_a_browser_must_not_follow(url):
    assert safe_url(url) == ""
