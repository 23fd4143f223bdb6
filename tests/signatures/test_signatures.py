"""Names, positions and defaults of all public functions and methods are PyTorch's."""

from __future__ import annotations

from collections import Counter

import pytest

from .record import END, PAGE, ROWS, START, Differences, differences, gone, table_of_differences, unexplained


@pytest.fixture(scope="module")
def compared() -> tuple[Differences, Counter[str]]:
    return differences()


def test_no_other_difference_than_the_known_ones(compared: tuple[Differences, Counter[str]]) -> None:
    new = unexplained(compared[0])
    assert not new, "\n".join(f"{path}: {'; '.join(texts)}" for path, texts in new.items())


def test_the_list_of_differences_only_shrinks(compared: tuple[Differences, Counter[str]]) -> None:
    assert not gone(compared[0]), "no difference any more: run `python -m tests.signatures --write`"


def test_the_page_says_what_the_comparison_gives(compared: tuple[Differences, Counter[str]]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = page[page.index(START) + len(START) : page.index(END)]
    assert found.endswith(table_of_differences()), "write the page again by `python -m tests.signatures --write`"
    for row, words in ROWS.items():  # functions are added often: the page need not have the last of them
        number = int(found.partition(f"| {words} | ")[2].partition(" |")[0].replace(",", ""))
        assert 0.8 * compared[1][row] < number <= compared[1][row], f"{words}: {number} on the page, {compared[1][row]}"
