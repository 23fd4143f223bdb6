"""The built site in a real browser: search works, no page has an error in its console, pages fit a phone."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

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
PHONE = 390
"""The width of a phone's screen, in CSS pixels."""

PROBE = """<!doctype html><title>waiting</title><iframe id="page" width="{width}" height="800" src="{page}"></iframe>
<script>
document.getElementById("page").onload = event => setTimeout(() => {{
  const inside = event.target.contentDocument.documentElement;
  document.title = `wide ${{inside.scrollWidth}} of ${{inside.clientWidth}}`;
}}, 500);
</script>"""

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason=f"no browser is installed: none of {', '.join(BROWSERS)} is there"),
    pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the site is not built: make docs builds it"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and beside it a page that shows another one in a frame as wide as a phone and measures it."""

    def do_GET(self) -> None:
        if not self.path.startswith("/probe/"):
            super().do_GET()
            return
        content = PROBE.format(width=PHONE, page=self.path.removeprefix("/probe")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(BUILT))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def shown(address: str, folder: Path) -> tuple[str, list[str]]:
    """The document of a page after its scripts have run, and the errors in its console."""
    assert BROWSER is not None
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--virtual-time-budget=8000",
    ]
    command = [BROWSER, *options, f"--user-data-dir={folder}", "--dump-dom", address]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    console = re.findall(r"CONSOLE[:(].*", run.stderr)
    return run.stdout, [line for line in console if re.search(r"rror|refused|404", line)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_error_in_its_console(address: str, page: str, tmp_path: Path) -> None:
    document, errors = shown(f"{address}/{page}", tmp_path)
    assert "Flambeau" in document
    assert errors == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone(address: str, page: str, tmp_path: Path) -> None:
    document, _ = shown(f"{address}/probe/{page}", tmp_path)
    measured = re.search(r"<title>wide (\d+) of (\d+)", document)
    assert measured is not None, document[:500]
    wide, screen = map(int, measured.groups())
    assert screen <= PHONE
    assert wide <= screen, f"{page} is {wide} pixels wide on a screen of {screen}"


def test_search_finds_a_function(address: str, tmp_path: Path) -> None:
    document, errors = shown(f"{address}/search.html?q=cross_entropy", tmp_path)
    found = re.search(r'<div id="search-results">(.*)', document, re.DOTALL)
    assert found is not None
    assert "flambeau.nn.functional.cross_entropy" in found[1]
    assert errors == []
