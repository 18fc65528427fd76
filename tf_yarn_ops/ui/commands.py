"""``ytf ui``: serve the pages on 127.0.0.1 until Ctrl-C, and open the browser."""

import secrets
import socket
from contextlib import closing, nullcontext

import click

from ..errors import SpecInvalid
from ..terminal import shared_options
from ..terminal.output import configure_logging, echo

#: The address on which the pages are served, unless the reader gives another one.
LOOPBACK = "127.0.0.1"


@click.command()
@shared_options.RESOURCEMANAGER_OPTION
@click.option(
    "--user",
    metavar="<glob>",
    default="*",
    help="Show the jobs of these users, as far as you may read their records.  [default: all]",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="<n>", help="[default: a free one]")
@click.option("--host", metavar="<address>", default=LOOPBACK, help=f"Address to listen on.  [default: {LOOPBACK}]")
@click.option(
    "--user-header",
    metavar="<name>",
    default="",
    help="For a team, behind a reverse proxy: the header in which it names the reader, such as "
    "X-Forwarded-User. Readers see what the view ACLs of the jobs allow.",
)
@click.option("--browser/--no-browser", default=True, help="Open the browser.  [default: browser]")
@shared_options.VERBOSE_OPTION
def ui(resourcemanager: str | None, user: str, port: int, host: str, user_header: str, browser: bool,
       verbose: bool) -> None:  # fmt: skip
    """Show ended and live jobs in the browser.

    Serves on this machine only unless --host says otherwise, reads only, and ends with Ctrl-C.
    """
    configure_logging(verbose, requests=verbose)
    try:
        from .boards import Boards
        from .pages import build_application
        from .serving import build_server, open_browser
    except ImportError as error:
        raise SpecInvalid(
            f"ytf ui needs a package that is missing ({error.name}); install the extra ui: "
            "pip install 'tf-yarn-ops[ui]'"
        ) from error
    from ..hadoop.cluster import discover
    from .job_store import JobStore

    listener = listen_at(host, port)
    cluster = discover(resourcemanager)
    store = JobStore(cluster, user)
    boards = Boards(cluster, team=bool(user_header))
    key = secrets.token_urlsafe(16)
    url = f"http://{host}:{listener.getsockname()[1]}/" + ("" if user_header else f"?key={key}")
    if not host.startswith(("127.", "localhost", "::1")):
        echo(
            "without TLS everybody on the way can read the pages"
            + (f", and everybody who reaches {host} can name any user in {user_header}" if user_header else "")
            + ": listen on 127.0.0.1 behind a reverse proxy with TLS"
        )
    server = build_server(build_application(store, key, user_header, boards, cluster.site.ui_realms))
    echo(f"serving {url} until Ctrl-C")
    opening = open_browser(url) if browser and not user_header else nullcontext()
    with closing(store), closing(boards), closing(listener), opening:
        server.run(sockets=[listener])


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; port 0 is any free one. Raise SpecInvalid if the address can't be used."""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise SpecInvalid(
            f"port {port} of {host} can't be used ({error.strerror}); give another one with --port and --host, or none"
        ) from error
