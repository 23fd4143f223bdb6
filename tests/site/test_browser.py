"""The built site in a real browser: search works, no page has an error in its console, pages fit a phone."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make docs installs it")

BUILT = Path(__file__).parents[2] / "docs" / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
PAGES = (
    "index.html",
    "learn/autograd.html",
    "learn/engine/op.html",
    "gallery.html",
    "compile.html",
    "reference/index.html",
)
PHONE, WIDE = 390, 1400
"""The widths of a phone's screen and of a computer's, in CSS pixels."""

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason=f"no browser is installed: none of {', '.join(BROWSERS)} is there"),
    pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the site is not built: make docs builds it"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site without a line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(BUILT))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@contextlib.contextmanager
def opened(browser: Any, address: str, width: int = WIDE) -> Iterator[tuple[Any, list[str]]]:
    """A page after its scripts have run, and the errors in its console, failed requests included."""
    page = browser.new_page(viewport={"width": width, "height": 844})
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("requestfailed", lambda request: errors.append(request.url))
    page.goto(address, wait_until="networkidle")
    try:
        yield page, errors
    finally:
        page.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_error_in_its_console(browser: Any, address: str, page: str) -> None:
    with opened(browser, f"{address}/{page}") as (shown, errors):
        assert "Flambeau" in shown.title()
        assert errors == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone(browser: Any, address: str, page: str) -> None:
    with opened(browser, f"{address}/{page}", PHONE) as (shown, _):
        wide, screen = shown.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert screen <= PHONE
        assert wide <= screen, f"{page} is {wide} pixels wide on a screen of {screen}"


def test_a_page_asks_nothing_of_another_host(browser: Any, address: str) -> None:
    """The site works without a network: scripts, fonts and the search index lie beside its pages."""
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/learn/autograd.html", wait_until="networkidle")
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith((address, "data:"))] == []


def test_search_finds_a_function(browser: Any, address: str) -> None:
    """Typed into the search field as a reader would, and the first results lead to the function's page."""
    with opened(browser, f"{address}/index.html") as (page, errors):
        page.keyboard.press("Control+k")
        page.keyboard.type("cross_entropy")
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results li a")
        page.wait_for_load_state("networkidle")
        links = [each.get_attribute("href") for each in page.query_selector_all("#search-results li > a")]
        assert any("flambeau.nn.functional.cross_entropy.html" in str(each) for each in links[:5]), links[:10]
        assert errors == []


def test_dark_mode(browser: Any, address: str) -> None:
    """The site follows the reader's system."""
    found = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(f"{address}/index.html", wait_until="networkidle")
        found[scheme] = page.evaluate(
            "[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
        )
        page.close()
    assert [found["light"][0], found["dark"][0]] == ["light", "dark"]
    assert found["light"][1] != found["dark"][1]
