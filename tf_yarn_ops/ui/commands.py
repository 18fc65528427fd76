"""``ytf ui``: serve the pages on 127.0.0.1 until Ctrl-C, and open the browser."""

import secrets
import socket
import threading
import webbrowser

import click

from ..errors import SpecInvalid
from ..terminal.output import configure_logging, say

#: The only address on which the pages are served.
LOOPBACK = "127.0.0.1"


@click.command()
@click.option("--resourcemanager", metavar="<URL>",
              help="http://host:8088, comma-separated for several.  "
                   "[default: YTF_RESOURCEMANAGER, site.yaml, HADOOP_CONF_DIR]")
@click.option("--user", metavar="<glob>", default="*",
              help="Show the jobs of these users, as far as you may read their records.  [default: all]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="<n>", help="[default: a free one]")
@click.option("--browser/--no-browser", default=True, help="Open the browser.  [default: browser]")
@click.option("-v", "--verbose", is_flag=True, help="Log each request to stderr.")
def ui(resourcemanager: str | None, user: str, port: int, browser: bool, verbose: bool) -> None:
    """Show ended and live jobs in the browser.

    Serves on this machine only, reads only, and ends with Ctrl-C.
    """
    configure_logging(verbose, requests=verbose)
    try:
        import uvicorn

        from .pages import build_application
    except ImportError as error:
        raise SpecInvalid(f"ytf ui needs a package that is missing ({error.name}); install the extra ui: "
                          "pip install 'tf-yarn-ops[ui]'") from error
    from ..hadoop.cluster import discover
    from .library import Library

    listener = listen_on_loopback(port)
    library = Library(discover(resourcemanager), user)
    key = secrets.token_urlsafe(16)
    url = f"http://{LOOPBACK}:{listener.getsockname()[1]}/?key={key}"
    config = uvicorn.Config(build_application(library, key), log_level="warning", lifespan="off", server_header=False)
    say(f"serving {url} until Ctrl-C")
    if browser:
        threading.Timer(0.3, webbrowser.open, [url]).start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        library.close()


def listen_on_loopback(port: int) -> socket.socket:
    """Return a socket on the loopback; 0 is any free port. Raise SpecInvalid if the port is taken."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise SpecInvalid(
            f"port {port} of {LOOPBACK} can't be used ({error.strerror}); give another one with --port, or none"
        ) from error
