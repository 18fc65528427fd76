"""axe-core, which finds what readers with a keyboard or a screen reader can't use on a page."""

from importlib.resources import files

#: Of the package axe-playwright-python.
SCRIPT = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def complaints(page, *rules):
    """Return what axe-core complains about: the rule and the elements. A content security policy does not stop it.

    Parameters
    ----------
    page : playwright.sync_api.Page
    *rules : str
        Of axe-core, such as ``color-contrast``. Default: all.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT)
    only = {"runOnly": list(rules)} if rules else {}
    found = page.evaluate("only => axe.run(document, {resultTypes: ['violations'], ...only})", only)
    return [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in found["violations"]]
