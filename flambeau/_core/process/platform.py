"""What the platform has: in the browser there are no processes, no sockets and no threads."""

from __future__ import annotations

import sys

IN_BROWSER = sys.platform == "emscripten"


def refuse_in_browser(what: str, instead: str) -> None:
    """Raise a RuntimeError in the browser: what does not exist there, and what to do."""
    if IN_BROWSER:
        raise RuntimeError(f"{what} do not exist in the browser: {instead}")
