"""`build_application`: the pages of ``ytf ui`` as an ASGI application; every page only reads jobs."""

import contextvars
import functools
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timezone
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, DispatchFunction, RequestResponseEndpoint
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ..errors import SpecInvalid, TfYarnError
from ..follow.live_report import LOG, STACK
from ..history.local_board import event_files
from ..history.query import STATES, Query, parse_states
from ..runtime.common.clock import DAY, duration, utc_time
from ..runtime.common.contract import DOCUMENT_TYPE
from ..runtime.common.escaping import escape_controls
from ..runtime.common.report import run_seconds
from ..runtime.common.web_address import safe_url
from ..runtime.page.drawing import draw_spark
from ..runtime.page.page import asset, changed_parts, page_policy, render_page, render_parts
from ..runtime.tensorboard.tensorboard_program import with_relative_fonts
from ..terminal.output import format_number
from ..validation import parse_since
from .boards import Boards
from .job_store import JobStore

#: Jobs on one page of the list.
PAGE_SIZE = 50
#: Seconds that a reader may look back.
LONGEST_PERIOD = 5 * 366 * DAY
#: Our script only, nothing from elsewhere; the job's page has a policy of its own, with its script.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
#: What TensorBoard gets of a request, and a reader of its answer.
_FORWARDED = ("accept", "content-type")
_ANSWERED = (
    "cache-control",
    "content-disposition",
    "content-security-policy",
    "content-type",
    "x-content-type-options",
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


_Answer = Callable[[Request], Awaitable[Response]]

#: One user, perhaps with a realm.
_READER = re.compile(r"[^\s,;@]+(@[^\s,;@]+)?")


class _InvalidQuery(SpecInvalid):
    """A value in the address that can't be used; a fault of the server's is a `SpecInvalid`, too."""


#: The folder of the pages in the addresses of this request.
_FOLDER = contextvars.ContextVar("folder", default="")


async def _with_headers(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Give each answer the headers that it lacks."""
    answer = await call_next(request)
    for name, value in _HEADERS.items():
        answer.headers.setdefault(name, value)
    return answer


def _admit_by_key(key: str, folder: str) -> DispatchFunction:
    """Let only readers in that know the key: from the address that ``ytf ui`` prints, later from a cookie.

    A browser sends a cookie to all ports of a host, and so to servers of other users on this machine. The pages lie
    below a folder that nobody can guess, and the cookie is sent to addresses below that folder only.
    """
    folder, cookie = folder or f"/{secrets.token_urlsafe(16)}", secrets.token_urlsafe(16)

    async def admit(request: Request, call_next: RequestResponseEndpoint) -> Response:
        if secrets.compare_digest(request.query_params.get("key", "").encode(), key.encode()):
            found = RedirectResponse(f"{folder}/", 303)
            found.set_cookie("ytf", cookie, path=f"{folder}/", httponly=True, samesite="strict")
            return found
        scope, known = request.scope, request.cookies.get("ytf", "")
        if not scope["path"].startswith(f"{folder}/") or not secrets.compare_digest(known.encode(), cookie.encode()):
            return PlainTextResponse("Open the whole address that ytf ui has printed, with its key.\n", 403)
        _FOLDER.set(folder)
        scope["raw_path"] = scope.get("raw_path", b"").removeprefix(folder.encode())
        scope["path"] = scope["path"].removeprefix(folder)
        return await call_next(request)

    return admit


def _admit_by_header(header: str, realms: Sequence[str]) -> DispatchFunction:
    """Let readers in that the reverse proxy in front of the pages names; nobody else may reach this server."""
    own = {realm.lower() for realm in realms}

    async def admit(request: Request, call_next: RequestResponseEndpoint) -> Response:
        named = [name.strip() for name in request.headers.getlist(header)]
        # A proxy that adds its header to that of the reader lets readers choose their name.
        if len(named) != 1 or not _READER.fullmatch(named[0]):
            return PlainTextResponse(
                f"The request must have the header {header} once, with one user: open the pages through their proxy, "
                "which replaces the header.\n",
                403,
            )
        user, _, realm = named[0].partition("@")
        request.scope["reader"] = user if realm.lower() in own else named[0]
        return await call_next(request)

    return admit


def build_application(
    store: JobStore,
    key: str = "",
    user_header: str = "",
    boards: Boards | None = None,
    realms: Sequence[str] = (),
    folder: str = "",
) -> Starlette:
    """Return the application.

    Parameters
    ----------
    store : JobStore
    key : str, optional
        Lets readers on this machine in that know it.
    user_header : str, optional
        Instead of the key: the header in which a reverse proxy names the reader, who sees what the view ACLs allow.
    boards : Boards, optional
        The TensorBoards that readers may start. Default: readers may start none.
    realms : sequence of str, optional
        With ``user_header``: the realms that are left off a reader's name, see `Site.ui_realms`. Default: none.
    folder : str, optional
        With a key: where the pages lie, ``/folder``. Default: a random one.
    """
    pages: dict[str, Callable[[JobStore, Request], Response]] = {
        "/": _list,
        "/jobs/{application_id}": _job,
        "/jobs/{application_id}/parts.json": _updates,
        "/jobs/{application_id}/log.txt": functools.partial(_log_end, LOG),
        "/jobs/{application_id}/stack.txt": functools.partial(_log_end, STACK),
    }
    routes = [Route(path, _page(store, build), methods=["GET"]) for path, build in pages.items()]
    routes += [Route(f"/{name}", functools.partial(_file, name), methods=["GET"]) for name in ("style.css", "page.js")]
    if boards is not None:
        place = "/jobs/{application_id}/tensorboard"
        routes += [
            Route(place, _with_body(_page(store, _start_board)), methods=["POST"]),
            Route(place + "/{path:path}", _with_body(_page(store, _forward_to_board)), methods=["GET", "POST"]),
        ]
    # A page of another site must not read jobs by a name of its own for this address.
    gate = (
        [Middleware(BaseHTTPMiddleware, dispatch=_admit_by_header(user_header, realms))]
        if user_header
        else [
            Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"]),
            Middleware(BaseHTTPMiddleware, dispatch=_admit_by_key(key, folder)),
        ]
    )
    application = Starlette(
        routes=routes,
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_with_headers), *gate, Middleware(GZipMiddleware)],
    )
    application.state.boards = boards
    return application


def _page(store: JobStore, build: Callable[[JobStore, Request], Response]) -> _Answer:
    async def answer(request: Request) -> Response:
        try:
            return await run_in_threadpool(build, store.seen_by(request.scope.get("reader", "")), request)
        except TfYarnError as error:
            return _render("error.html", 400 if isinstance(error, _InvalidQuery) else 503, text=str(error))

    return answer


def _with_body(page: _Answer) -> _Answer:
    async def answer(request: Request) -> Response:
        # The cookie comes with requests of other servers on 127.0.0.1, too: for SameSite they are the same site.
        if request.method == "POST" and request.headers.get("sec-fetch-site") != "same-origin":
            return _render("error.html", 403, text="Only a page of this address may ask for that.")
        request.state.body = await request.body()
        return await page(request)

    return answer


async def _file(name: str, request: Request) -> Response:
    script = name.endswith(".js")
    text = asset(name) if script else asset("page.css") + (files(__package__) / "templates" / name).read_text("utf-8")
    return Response(
        text, media_type="text/javascript" if script else "text/css", headers={"Cache-Control": "max-age=60"}
    )


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("tf_yarn_ops.ui"),
        autoescape=True,
        finalize=lambda value: escape_controls(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["folder"] = _FOLDER.get
    made.filters |= {
        "duration": duration,
        "moment": utc_time,
        "number": format_number,
        "run_seconds": run_seconds,
        "spark": draw_spark,
    }
    return made


def _render(template: str, status: int = 200, **values: Any) -> Response:
    text = _environment().get_template(template).render(**values)
    return HTMLResponse(text, status, headers={"Content-Security-Policy": _POLICY})


def _query(request: Request) -> tuple[Query, dict[str, str]]:
    """Return the query of an address, and the values of the form that shows it."""
    form = {name: request.query_params.get(name, "").strip() for name in ("name", "since", "state", "user")}
    try:
        since = parse_since(form["since"], time.time(), timezone.utc) if form["since"] else 0.0
        states = parse_states([form["state"]])
    except SpecInvalid as error:
        raise _InvalidQuery(str(error)) from error
    if since and since < time.time() - LONGEST_PERIOD:
        raise _InvalidQuery(f"since={form['since']!r} reaches back more than 5 years")
    return Query("*", since, states, form["user"] or "*", form["name"]), form


def _skip(request: Request) -> int:
    text = request.query_params.get("skip", "0")
    if not (text.isdecimal() and len(text) < 9):
        raise _InvalidQuery(f"skip={text!r} is no number")
    return int(text)


def _list(store: JobStore, request: Request) -> Response:
    query, form = _query(request)
    skip, cut = _skip(request), set[str]()
    summaries, more = store.page(query, skip, PAGE_SIZE, cut)
    live, why = store.live() if not skip else ([], "")
    live = [job for job in live if query.matches({**vars(job), "finished_at": time.time()})]

    def other(number: int) -> str:
        return f"{_FOLDER.get()}/?" + urlencode(
            {**{name: value for name, value in form.items() if value}, "skip": number}
        )

    return _render(
        "list.html",
        form=form,
        cut=cut,
        jobs=summaries,
        live=live,
        why=why,
        states=STATES,
        now=time.time(),
        newer=other(max(0, skip - PAGE_SIZE)) if skip else "",
        older=other(skip + PAGE_SIZE) if more else "",
    )


def _job(store: JobStore, request: Request) -> Response:
    application_id = request.path_params["application_id"]
    if (document := store.document(application_id)) is None:
        return _render("error.html", 404, text=f"Neither the history nor YARN knows {application_id}.")
    links = _environment().get_template("links.html").render()
    place = f"{_FOLDER.get()}/jobs/{quote(application_id, safe='')}/"
    page = render_page(document, live=_is_live(document), before=links, place=place, board=_board(document, request))
    return HTMLResponse(page, headers={"Content-Security-Policy": f"{page_policy()}; frame-ancestors 'none'"})


def _updates(store: JobStore, request: Request) -> Response:
    if (document := store.updates(request.path_params["application_id"])) is None:
        return PlainTextResponse("The job does not answer.\n", 503)
    query = request.query_params
    parts = render_parts(document, live=_is_live(document), board=_board(document, request), find=query.get("find", ""))
    return JSONResponse(changed_parts(parts, query.get("marks", "")), media_type=DOCUMENT_TYPE)


def _log_end(page: str, store: JobStore, request: Request) -> Response:
    text = store.log_end(request.path_params["application_id"], request.query_params.get("task", ""), page)
    if text is None:
        return PlainTextResponse("The task has no agent that answers.\n", 404)
    return PlainTextResponse(escape_controls(text))


def _is_live(document: Mapping[str, Any]) -> bool:
    return document.get("reason") is None


def _board(document: Mapping[str, Any], request: Request) -> str:
    """Return TensorBoard's address, as far as a browser may follow it; of an ended job the one that starts it."""
    if not _is_live(document):
        boards: Boards | None = request.app.state.boards
        shown = boards is not None and boards.shows(str(document.get("user") or ""), event_files(document))
        return _board_path(request) if shown else ""
    return safe_url(document.get("tensorboard_url"))


def _board_path(request: Request) -> str:
    return f"{_FOLDER.get()}/jobs/{quote(request.path_params['application_id'], safe='')}/tensorboard"


def _start_board(store: JobStore, request: Request) -> Response:
    application_id = request.path_params["application_id"]
    document = store.document(application_id)
    if document is None or not (path := _board(document, request)) or _is_live(document):
        raise _InvalidQuery(f"{application_id} is no ended job with an output path")
    request.app.state.boards.start(application_id, str(document.get("user")), event_files(document), path)
    return RedirectResponse(f"{path}/", 303)


def _forward_to_board(store: JobStore, request: Request) -> Response:
    boards: Boards = request.app.state.boards
    application_id, reader = request.path_params["application_id"], request.scope.get("reader", "")
    board = boards.find(application_id)
    if board is not None and reader not in board.readers:
        if store.document(application_id) is None:
            board = None
        else:
            board.readers.add(reader)
    if board is None:
        return RedirectResponse(_board_path(request).rpartition("/")[0], 303)
    if board.fault:
        return _render("error.html", 500, text=board.fault)
    if not board.listens:
        starting = _render("error.html", heading="TensorBoard starts", text="Its page opens by itself.")
        starting.headers["Refresh"] = "1"
        return starting
    path = _FOLDER.get() + request.scope["raw_path"].decode() + ("?" + request.url.query if request.url.query else "")
    try:
        found = boards.forward(
            board,
            request.method,
            path,
            request.state.body,
            {name: value for name, value in request.headers.items() if name in _FORWARDED},
        )
    except httpx.TransportError as error:
        return _render("error.html", 502, text=f"TensorBoard does not answer: {error}")
    headers = {name: value for name, value in found.headers.items() if name in _ANSWERED}
    if "location" in found.headers:
        headers["location"] = urlsplit(found.headers["location"])._replace(scheme="", netloc="").geturl()
    page = headers.get("content-type", "").startswith("text/html")
    return Response(with_relative_fonts(found.content) if page else found.content, found.status_code, headers)
