"""A headless Chromium of the distribution, driven by Playwright; a page whose console has an error fails its test.

A page with a content security policy can't use ``page.wait_for_function``; poll ``page.evaluate`` with `until`.
"""

import contextlib
import shutil

from support.waiting import PATIENCE

#: The names of the program in Debian, Fedora and others.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: Milliseconds for one step in the browser; a loaded machine needs some.
MILLISECONDS = 60_000 * PATIENCE
#: As root Chromium runs only without its sandbox. Small containers have a small /dev/shm. The machine's proxy is not for us.
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server")


@contextlib.contextmanager
def chromium():
    """Yield a browser for several calls of `browsing`: one start takes a second."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert program, "no Chromium on PATH; install the package chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def browsing(browser=None, *, width=1280, height=900, scripts=True, errors=()):
    """Yield a page of a fresh browser; raise AssertionError at the end if its console has an error.

    Parameters
    ----------
    browser : playwright.sync_api.Browser, optional
        Of `chromium`. Default: one of its own.
    width, height : int, optional
        Of the window, pixels; a phone has 390 x 844.
    scripts : bool, optional
        Whether JavaScript runs.
    errors : sequence of str, optional
        An error that contains one of these texts is expected.

    Yields
    ------
    playwright.sync_api.Page
        With ``page.complaints``, the list of errors so far.
    """
    with contextlib.nullcontext(browser) if browser else chromium() as one:
        context = one.new_context(
            java_script_enabled=scripts,
            viewport={"width": width, "height": height},
        )
        try:
            page = context.new_page()
            page.set_default_timeout(MILLISECONDS)
            page.set_default_navigation_timeout(MILLISECONDS)
            page.complaints = []
            page.on(
                "console",
                lambda message: (
                    message.type == "error"
                    and page.complaints.append(f"{message.text} ({message.location.get('url')})")
                ),
            )
            page.on("pageerror", lambda error: page.complaints.append(str(error)))
            yield page
            check_console(page.complaints, errors)
        finally:
            context.close()


def check_console(complaints, errors=()):
    """Raise AssertionError if an error of a browser's console contains none of the expected texts."""
    unexpected = [text for text in complaints if not any(known in text for known in errors)]
    assert not unexpected, f"errors in the browser's console: {unexpected}"
