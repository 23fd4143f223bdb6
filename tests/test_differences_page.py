"""The page of differences from PyTorch names what the lists of known gaps name."""

from __future__ import annotations

import re

from tools import differences


def test_every_list_reaches_the_page() -> None:
    page = differences.write()
    for path in ("tests/conformance/known_gaps.json", "tests/conformance/cuda_gaps.json"):
        for name in differences.read(path):
            assert f"`{name}`" in page
    for reason in differences.read("tools/absent_names.json"):
        assert differences.sentence(reason) in page


def test_its_tables_hold_together() -> None:
    """Each row has as many cells as its table's head: a bar inside a name would break it."""
    head = 0
    for line in differences.write().splitlines():
        cells = len(re.findall(r"(?<!\\\\)\|", line)) if line.startswith("|") else 0
        assert not head or not cells or cells == head, line
        head = cells
