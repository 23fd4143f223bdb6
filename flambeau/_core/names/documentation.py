"""Where the pages of the documentation are, for messages that name one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_BUILT = Path(__file__).parents[3] / "docs" / "_build" / "html"
"""Where `make docs` puts the site in a checkout."""


@cache
def page(name: str) -> str:
    """The address of a page of the documentation's site.

    A release knows its site: the address `Documentation` of the installed package, which the release's workflow writes.
    A checkout may have built the site. Without either, the page's name on the site must do.

    Args:
        name (str): the page without an ending: "names", "learn/compile".
    """
    base = _published()
    if base:
        return f"{base.rstrip('/')}/{name}.html"
    built = _BUILT / f"{name}.html"
    return built.as_uri() if built.is_file() else f"{name}.html of Flambeau's documentation"


def _published() -> str:
    """The address of the site that the installed package names; an empty string where it names none."""
    from importlib import metadata  # costs 20 ms, which only messages pay

    try:
        addresses = metadata.metadata("flambeau").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    named = dict(str(each).split(", ", 1) for each in addresses)
    return named.get("Documentation", "")
