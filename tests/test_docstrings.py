"""Words of the package: docstrings that need their neighbour to be understood, counted by folder, where the counts only
shrink; and names that once stood for something which has a word of the field.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "flambeau"

THE_SAME = {
    "_torch": 1, "ao": 66, "backends": 1, "compiler": 9, "cuda": 1, "distributed": 5, "distributions": 5, "export": 5,
    "fx": 13, "multiprocessing": 3, "nn": 10, "onnx": 3, "ops": 8, "overrides.py": 2, "profiler": 1, "sparse": 1,
    "utils": 7,
}  # fmt: skip
"""Docstrings that begin with "The same": it takes another one to know what. A folder that is not here has none."""


def test_docstrings_that_lean_on_their_neighbour() -> None:
    counts: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or ""
                counts[path.relative_to(PACKAGE).parts[0]] += text.startswith("The same")
    more = counts - Counter(THE_SAME)
    assert not more, f"say what it does without its neighbour: {more}"


PRIVATE_WORDS = re.compile(
    r"\b_?(?:bench|tapes?|season|stretch|stretches|lent|shadows?|witness|going_ahead|AHEAD|WAITS|LENT|Bench|Tape|Stretch|Lent)\b"
)
"""What they are called now: workspace, call list, generation, segment, result memory, placeholder, compile queue."""


def test_no_private_words() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if PRIVATE_WORDS.search(text) and "keep_aspect_ratio" not in text and 'policy == "stretch"' not in text:
                found.append(f"{path.relative_to(PACKAGE)}:{line}: {text.strip()}")  # ONNX itself says "stretch"
    assert not found, "\n".join(found)
