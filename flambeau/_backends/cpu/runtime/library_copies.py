"""The wheel of oneDNN carries its library three times: wheels cannot hold links, under which it was meant to lie."""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

from ..onednn.library import find


def link_copies() -> tuple[Path | None, int]:
    """Replace equal copies beside the library by links to it; where it is, and how many bytes that frees.

    Each link is made under another name first and takes the copy's place at once, so that a process that loads the
    library meanwhile finds it. Where the file system has no links, the copies stay.
    """
    library = find()
    if library is None or not library.is_file():
        return None, 0
    kept = library.resolve()
    freed = 0
    for copy in sorted(kept.parent.glob("libdnnl.so*")):
        if copy == kept or copy.is_symlink() or not filecmp.cmp(copy, kept, shallow=False):
            continue
        size = copy.stat().st_size
        link = copy.with_name(f"{copy.name}.{os.getpid()}")
        try:
            link.symlink_to(kept.name)
            os.replace(link, copy)
        except OSError:
            link.unlink(missing_ok=True)
            raise
        freed += size
    return library, freed
