"""The script that the front adds to TensorBoard's page, and the notation in which it sends a POST."""

import base64
import json
from typing import Optional, Tuple

from .tensorboard_program import with_relative_fonts

#: The script's path, relative to TensorBoard's page.
PATH = "ytf-post.js"
#: The type of a body in which a POST travels.
CONTENT_TYPE = "application/x-ytf-post"

#: YARN's proxy refuses a POST (405), passes a PUT, and removes the line ends from its body. So each POST becomes a PUT
#: with one line, a JSON object: the type of the original body, and the body in base64.
SCRIPT = (
    """\
(function () {
  "use strict";
  var kind = "%s";
  var native = window.fetch, request = XMLHttpRequest.prototype;
  var open = request.open, send = request.send, setHeader = request.setRequestHeader;

  function isPost(method) {
    return /^post$/i.test(method || "");
  }

  async function encode(answer, type) {
    var bytes = new Uint8Array(await answer.arrayBuffer()), text = "";
    for (var at = 0; at < bytes.length; at += 32768) {
      text += String.fromCharCode.apply(null, bytes.subarray(at, at + 32768));
    }
    return JSON.stringify({type: type || answer.headers.get("content-type") || "", body: btoa(text)});
  }

  window.fetch = async function (input, options) {
    var given = new Request(input, options);
    if (!isPost(given.method) || new URL(given.url).origin !== location.origin) {
      return native(given);
    }
    return native(given.url, {
      method: "PUT", body: await encode(given), headers: {"Content-Type": kind},
      credentials: given.credentials, signal: given.signal,
    });
  };

  request.open = function (method, url, async) {
    var same = new URL(url, document.baseURI).origin === location.origin;
    this.ytfPost = isPost(method) && same && async !== false;
    this.ytfType = "";
    var words = Array.from(arguments);
    words[0] = this.ytfPost ? "PUT" : method;
    return open.apply(this, words);
  };

  request.setRequestHeader = function (name, value) {
    if (this.ytfPost && /^content-type$/i.test(name)) {
      this.ytfType = value;
      return;
    }
    setHeader.call(this, name, value);
  };

  request.send = function (body) {
    if (!this.ytfPost) {
      return send.call(this, body);
    }
    var self = this;
    encode(new Response(body), this.ytfType).then(function (line) {
      setHeader.call(self, "Content-Type", kind);
      send.call(self, line);
    });
  };
})();
"""
    % CONTENT_TYPE
)


def decode_post(line: bytes) -> Optional[Tuple[str, bytes]]:
    """Return type and body of the POST that the body of a PUT carries, one of `CONTENT_TYPE`; None for any other."""
    try:
        document = json.loads(line)
        return str(document["type"]), base64.b64decode(document["body"], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def add_script(page: bytes) -> bytes:
    """Return TensorBoard's page with the script as the first one, and with fonts that a proxy finds."""
    head, tag, rest = page.partition(b"<head>")
    if not tag:
        return page
    return head + tag + b'<script src="%s"></script>' % PATH.encode() + with_relative_fonts(rest)
