"""`FileCheck`: assertions about the order of pieces of text, as tests of printed programs make them."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Check(NamedTuple):
    word: str
    text: str
    times: int = 1
    exactly: bool = False

    def __str__(self) -> str:
        return f"{self.word}-{self.times}: {self.text}" if self.word == "CHECK-COUNT" else f"{self.word}: {self.text}"


_MARKED = re.compile(
    r"^\s*#\s*(CHECK(?:-(?:NOT|NEXT|SAME|DAG|REGEX|SOURCE-HIGHLIGHTED|COUNT-(?:EXACTLY-)?\d+))?):\s*(.*?)\s*$",
    re.MULTILINE,
)


class FileCheck:
    """Checks that are made one after another, each from where the one before was found.

    >>> flambeau.FileCheck().check("one").check_not("four").check("three").run("one two three")
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, word: str, text: str, count: int = 1, exactly: bool = False) -> FileCheck:
        self._checks.append(_Check(word, text, count, exactly))
        return self

    def check(self, test_string: str) -> FileCheck:
        """The text comes next, whatever is before it."""
        return self._add("CHECK", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """The text does not come before the next check's, or at all."""
        return self._add("CHECK-NOT", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """The text comes next, in the same line."""
        return self._add("CHECK-SAME", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """The text comes next, in the next line."""
        return self._add("CHECK-NEXT", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """The text comes that many times, and with `exactly` not once more."""
        return self._add("CHECK-COUNT", test_string, count, exactly)

    def check_dag(self, test_string: str) -> FileCheck:
        """The text comes, in any order with the checks of this kind beside it."""
        return self._add("CHECK-DAG", test_string)

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """The text comes, underlined in the next line."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", test_string)

    def check_regex(self, test_string: str) -> FileCheck:
        """Something comes that the expression describes."""
        return self._add("CHECK-REGEX", test_string)

    def run(self, checks: object, test: object = None) -> None:
        """Make the checks on a text; of two texts, the first has them in comments: `# CHECK-NEXT: what comes next`."""
        text = str(checks) if test is None else str(test)
        if test is not None:
            for word, wanted in _MARKED.findall(str(checks)):
                kind, _, count = word.partition("-COUNT-")
                if count:
                    self._add("CHECK-COUNT", wanted, int(count.rpartition("-")[2]), "EXACTLY" in count)
                else:
                    self._add(kind, wanted)
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance of FileCheck! Check for bad input.")
        _run(self._checks, text)


def _run(checks: list[_Check], text: str) -> None:
    position = 0
    refused: list[_Check] = []
    number = 0
    while number < len(checks):
        check = checks[number]
        if check.word == "CHECK-NOT":
            refused.append(check)
            number += 1
            continue
        if check.word == "CHECK-DAG":
            group = []
            while number < len(checks) and checks[number].word == "CHECK-DAG":
                group.append(checks[number])
                number += 1
            found = [_find(each, text, position) for each in group]
            start, end = min(first for first, _ in found), max(last for _, last in found)
        else:
            start, end = _place(check, text, position)
            number += 1
        for each in refused:
            _refuse(each, text, position, start)
        refused = []
        position = end
    for each in refused:
        _refuse(each, text, position, len(text))


def _find(check: _Check, text: str, position: int) -> tuple[int, int]:
    """Where the next piece of text is that a check asks for."""
    if check.word == "CHECK-REGEX":
        match = re.compile(check.text).search(text, position)
        if match is None:
            raise RuntimeError(
                f'Expected to find regex "{check.text}" but did not find it\nSearched string:\n{text[position:]}\n'
                f"From {check}\n"
            )
        return match.span()
    start = text.find(check.text, position)
    if start < 0:
        raise RuntimeError(
            f'Expected to find "{check.text}" but did not find it\nSearched string:\n{text[position:]}\nFrom {check}\n'
        )
    return start, start + len(check.text)


def _place(check: _Check, text: str, position: int) -> tuple[int, int]:
    """Where a check holds; a RuntimeError if it does not."""
    start, end = _find(check, text, position)
    first = start
    for _ in range(check.times - 1):
        _, end = _find(check, text, end)
    if check.exactly:
        _refuse(_Check("CHECK-NOT", check.text), text, end, len(text))
    lines = text.count("\n", position, start)
    if lines != {"CHECK-SAME": 0, "CHECK-NEXT": 1}.get(check.word, lines):
        wanted = "in the same line" if check.word == "CHECK-SAME" else "in the next line"
        raise RuntimeError(
            f'Expected to not find "\\n" but found it\n"{check.text}" is not {wanted}:\n{text[position:end]}\n'
            f"From {check}\n"
        )
    if check.word == "CHECK-SOURCE-HIGHLIGHTED":
        _check_underlined(check, text, position)
    return first, end


def _check_underlined(check: _Check, text: str, position: int) -> None:
    start = text.find(check.text, position)
    while start >= 0:
        column = start - (text.rfind("\n", 0, start) + 1)
        line_end = text.find("\n", start)
        below = text[line_end + 1 :].partition("\n")[0] if line_end >= 0 else ""
        if below[column : column + len(check.text)] == "~" * len(check.text):
            return
        start = text.find(check.text, start + 1)
    raise RuntimeError(f'Expected to find "{check.text}"highlighted but it is not.\n{text[position:]}\n')


def _refuse(check: _Check, text: str, start: int, end: int) -> None:
    place = text.find(check.text, start, end)
    if place >= 0:
        line_start = text.rfind("\n", 0, place) + 1
        line = text[line_start:].partition("\n")[0]
        raise RuntimeError(
            f'Expected to not find "{check.text}" but found it\n{line}\n'
            f"{' ' * (place - line_start)}{'~' * len(check.text)} <--- HERE\nFrom {check}\n"
        )
