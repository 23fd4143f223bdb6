"""Links of the built site: each leads to a page, a file or a heading that is there."""

from __future__ import annotations

import functools
import html
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .test_browser import BUILT

pytestmark = pytest.mark.skipif(
    not (BUILT / "index.html").is_file(), reason="the site is not built: make docs builds it"
)

_LINK = re.compile(r'<(?:a|img|script|link|iframe)\b[^>]*?\b(?:href|src)="([^"]*)"')
_ANCHOR = re.compile(r'\b(?:id|name)="([^"]*)"')


@functools.cache
def anchors(path: str) -> frozenset[str]:
    return frozenset(map(html.unescape, _ANCHOR.findall(Path(path).read_text(encoding="utf-8"))))


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere on this site; those to other hosts are not followed."""
    found = []
    for link in set(_LINK.findall(page.read_text(encoding="utf-8"))):
        parts = urlsplit(html.unescape(link))
        if parts.scheme or parts.netloc:
            continue
        target = os.path.normpath(page.parent / unquote(parts.path)) if parts.path else str(page)
        if not is_there(target) or (parts.fragment and unquote(parts.fragment) not in anchors(target)):
            found.append(link)
    return found


@functools.cache
def is_there(path: str) -> bool:
    return os.path.isfile(path)


def test_every_link_leads_somewhere() -> None:
    pages = sorted(
        each for each in BUILT.rglob("*.html") if "_static" not in each.parts
    )  # the theme has templates there
    assert len(pages) > 2500
    wrong = {str(page.relative_to(BUILT)): links for page in pages if (links := broken(page))}
    assert wrong == {}, dict(list(wrong.items())[:20])


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<h1 id="here"></h1><a href="#here"></a><a href="#there"></a><a href="none.html"></a>')
    assert sorted(broken(page)) == ["#there", "none.html"]
