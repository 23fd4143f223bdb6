"""The page on ONNX shows what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"


def test_the_page() -> None:
    sessions = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, "onnx.md", "onnx.md", 0)
    assert len(examples.examples) > 12
    complaints: list[str] = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(verbose=False, optionflags=options).run(examples, out=complaints.append)
    assert not complaints, "".join(complaints)
