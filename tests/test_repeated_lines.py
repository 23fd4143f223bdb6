"""Pairs of files that share ten or more equal lines: a list that only shrinks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("flambeau", "tests", "examples", "tools", "benchmarks", "docs")

WRITTEN = {"flambeau/_dispatch/call/results.py"}
"""What a tool writes from a text that stands in the tool: `tools/results.py`."""

LINES = 10
TOO_COMMON = 8
"""Lines that stand in more places are a form that files have, such as a list of imported names."""

PAIRS = {
    # Generated: the same words about arguments, functions and methods of one name.
    ("flambeau/__init__.pyi", "flambeau/__init__.pyi"),
    ("flambeau/__init__.pyi", "flambeau/_core/methods.pyi"),
    ("flambeau/__init__.pyi", "flambeau/linalg.pyi"),
    ("flambeau/__init__.pyi", "flambeau/special.pyi"),
    ("flambeau/_core/methods.pyi", "flambeau/_core/methods.pyi"),
    ("flambeau/_core/methods.pyi", "flambeau/linalg.pyi"),
    ("flambeau/_core/methods.pyi", "flambeau/special.pyi"),
    ("flambeau/fft.pyi", "flambeau/fft.pyi"),
    ("flambeau/nn/functional.pyi", "flambeau/nn/functional.pyi"),
    ("flambeau/signal/windows/__init__.pyi", "flambeau/signal/windows/__init__.pyi"),
    ("flambeau/special.pyi", "flambeau/special.pyi"),
    # Signatures that repeat those of others, as PyTorch's do.
    ("flambeau/ao/quantization/fx/fuse_handler.py", "flambeau/ao/quantization/fx/fuse_handler.py"),
    ("flambeau/nn/modules/conv.py", "flambeau/nn/modules/conv.py"),
    ("flambeau/nn/modules/rnn.py", "flambeau/nn/modules/rnn.py"),
    # The loop over keys and values of two kernels.
    ("flambeau/_codegen/cuda/attention.py", "flambeau/_codegen/cuda/attention.py"),
}


def _lines(text: str) -> list[str]:
    """The lines that say something: not blank ones, comments, brackets alone or imports."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if re.search(r"\w", line) and not re.match(r"#|from |import ", line)]


def _repeated(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The pairs of names whose texts share lines; a name with itself if it says them twice."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, text in texts:
        lines = _lines(text)
        for number in range(len(lines) - LINES + 1):
            places[tuple(lines[number : number + LINES])].append((name, number))
    for found in places.values():
        for (one, first), (other, second) in combinations(found, 2) if len(found) <= TOO_COMMON else ():
            if one != other or second - first >= LINES:
                yield one, other


def test_pairs_of_files_are_those_listed() -> None:
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py*") if path.suffix != ".pyc")
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    found = set(_repeated((name, text) for name, text in texts.items() if name not in WRITTEN))
    assert found - PAIRS == set(), "write once what these share"
    assert PAIRS - found == set(), "mended: take it off the list"


def test_repeated_lines_are_seen() -> None:
    said = "\n".join(f"line {number}" for number in range(LINES))
    assert set(_repeated([("a", said), ("b", f"# more\n\n  {said}")])) == {("a", "b")}
    assert set(_repeated([("a", f"{said}\n{said}")])) == {("a", "a")}
    assert not set(_repeated([("a", said), ("b", said.replace("line 5", "five"))]))
