"""Compare all signatures; `--write`: shorten the list of known differences, and write the page."""

from __future__ import annotations

import sys

from .record import PAGE, differences, shrink, unexplained, written


def main() -> int:
    """Show what the list does not explain."""
    found, counts = differences()
    for path, texts in unexplained(found).items():
        print(f"{path}: {'; '.join(texts)}")
    if "--write" in sys.argv[1:]:
        shrink(found)
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), counts), encoding="utf-8")
    return 1 if unexplained(found) else 0


if __name__ == "__main__":
    sys.exit(main())
