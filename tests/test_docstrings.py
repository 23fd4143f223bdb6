"""Words of the package: docstrings that need no neighbour to be understood, and how many are short, by folder, which
only shrinks; no names that once stood for something which has a word of the field.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "flambeau"

SHORT = {
    "_backends": 37, "_cli": 7, "_codegen": 18, "_core": 22, "_dispatch": 13, "_learn": 29, "_ops": 76,
    "_serialization": 7, "_torch": 17, "_wiring.py": 1, "amp": 2, "ao": 64, "autograd": 17, "backends": 9,
    "compiler": 18, "cpu": 8, "cuda": 14, "distributed": 51, "distributions": 54, "export": 8, "func": 3,
    "futures.py": 1, "fx": 22, "hub.py": 1, "jit": 47, "masked": 1, "models": 1, "monitor.py": 2,
    "multiprocessing": 3, "nested": 1, "nn": 42, "onnx": 9, "ops": 4, "optim": 21, "package": 11, "profiler": 4,
    "quasirandom.py": 1, "safetensors.py": 1, "sparse": 2, "torch_version.py": 2, "utils": 42,
}  # fmt: skip
"""Docstrings of four words or fewer, by folder: few say all that a reader needs. A folder that is not here has none."""


LEANING = re.compile(r"(The same|Those of|That (of|in)|Its)\b")
"""Beginnings of what only a reader of the text before understands."""

HEADLESS = re.compile(r"(Of|Such|Their|These)\b")
"""Beginnings that leave out what they are about: "Of one step" meant the form of the array of one step."""


def test_docstrings_stand_alone() -> None:
    short: Counter[str] = Counter()
    leaning = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or ""
                short[path.relative_to(PACKAGE).parts[0]] += 0 < len(text.split()) <= 4
                if HEADLESS.match(text):
                    leaning.append(f"{path.relative_to(PACKAGE)}: {text}")
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # what an attribute means
                text = str(node.value.value)
            else:
                continue
            if LEANING.match(text):
                leaning.append(f"{path.relative_to(PACKAGE)}: {text}")
    assert not leaning, leaning
    more = short - Counter(SHORT)
    assert not more, f"say what it does in a sentence: {more}"


PRIVATE_WORDS = re.compile(
    r"\b_?(?:bench|tapes?|season|stretch|stretches|lent|shadows?|witness|going_ahead|AHEAD|WAITS|LENT|Bench|Tapes?|Stretch|Stretches|Lent)\b"
)
"""What they are called now: workspace, call list, generation, segment, result memory, placeholder, compile queue."""


SPREAD = re.compile(r"\b[Ss]preads?\b")
"""Of tensors on several processes one says that they are distributed, of parameters that they are sharded."""


def test_no_private_words() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        words = (PRIVATE_WORDS, SPREAD) if "distributed" in path.parts else (PRIVATE_WORDS,)
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if (
                any(each.search(text) for each in words)
                and "keep_aspect_ratio" not in text
                and 'policy == "stretch"' not in text
            ):
                found.append(f"{path.relative_to(PACKAGE)}:{line}: {text.strip()}")  # ONNX itself says "stretch"
    assert not found, "\n".join(found)
