"""Makes the links of README.md absolute, as PyPI needs them: `python tools/readme.py ADDRESS_OF_THE_REPOSITORY`.

The release's workflow does it before it builds: in a checkout relative links are the ones that work.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
_LINK = re.compile(r"(!?)\[([^]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def absolute(text: str, repository: str) -> str:
    """`text` with links to files of the repository at this address; pictures as they are, pages as they are shown."""
    base = repository.rstrip("/")
    return _LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({base}/{'raw' if found[1] else 'blob'}/main/{found[3]})", text
    )


if __name__ == "__main__":
    README.write_text(absolute(README.read_text(encoding="utf-8"), sys.argv[1]), encoding="utf-8")
