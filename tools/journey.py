"""Write the source of `cumsum`'s call into docs/design.md, as `flambeau explain op cumsum` shows it.

python -m tools.journey
"""

from __future__ import annotations

import re
from pathlib import Path

from flambeau._dispatch.call.source import source_of
from flambeau._dispatch.op import OPS
from flambeau._dispatch.public import registry

PAGE = Path(__file__).parents[1] / "docs" / "design.md"
BLOCK = re.compile(r"(<!-- call of (\w+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def written(page: str) -> str:
    """The page with the sources of today."""
    registry.load_all()
    return BLOCK.sub(lambda found: f"{found[1]}{source_of(OPS[found[2]]).rstrip()}\n{found[4]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
