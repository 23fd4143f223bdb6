"""Pages that are written from data before Sphinx reads pages: the programs of the gallery, differences from PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools import differences
from tools.gallery import PROGRAMS, program_page, read_times


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: Path) -> None:
    """Write the pages below `folder`; files that would not change are left alone, so that Sphinx need not read them."""
    (folder / "gallery").mkdir(exist_ok=True)
    times = read_times()
    pages = {f"gallery/{each.name}.md": program_page(each, times[each.name]["seconds"]) for each in PROGRAMS}
    for stale in {f"gallery/{each.name}" for each in (folder / "gallery").glob("*.md")} - set(pages):
        (folder / stale).unlink()
    for name, text in {**pages, "differences.md": differences.write()}.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
