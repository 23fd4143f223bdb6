"""What code reads and sets, told from its bytecode: the same on every Python, whose bytecodes differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flambeau.compiler.capture.names_read import counts, stores_in

TOTAL = 0


def named(function: Callable[..., Any]) -> set[tuple[str, tuple[str, ...]]]:
    """What the lines of a function that set something name."""
    return {each for line in stores_in(function.__code__).values() for each in line}


def sets_attribute(owner: Any, value: Any) -> None:
    owner.value = value


def sets_attribute_of_attribute(owner: Any, value: Any) -> None:
    owner.cell.value = value


def sets_item(table: Any, key: Any, value: Any) -> None:
    table[key] = value


def sets_slice(items: Any, end: Any, value: Any) -> None:
    items[:end] = value


def grows(owner: Any, value: Any) -> None:
    owner.items.append(value)


def sets_what_a_line_before_took(owner: Any, value: Any) -> None:
    cell = owner.cell
    cell.value = value


def sets_through_a_closure(value: Any) -> Callable[[], None]:
    owner = value

    def inner() -> None:
        owner.value = value

    return inner


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (sets_attribute, {("owner", ()), ("value", ())}),
        (sets_attribute_of_attribute, {("owner", ("cell",)), ("value", ())}),
        (sets_item, {("table", ()), ("key", ()), ("value", ())}),
        (sets_slice, {("items", ()), ("end", ()), ("value", ())}),
        (grows, {("owner", ("items", "append")), ("value", ())}),
        (sets_what_a_line_before_took, {("cell", ()), ("value", ())}),
        (sets_through_a_closure(1), {("owner", ()), ("value", ())}),
    ],
)
def test_lines_that_set_something_name_all_their_variables(function: Callable[..., Any], expected: Any) -> None:
    assert named(function) == expected


def counts_its_own(x: Any) -> Any:
    number = 0
    number += 1
    return x * number


def counts_its_own_and_sets_another(x: Any, number: Any) -> Any:
    number += x; other = number  # fmt: skip  # noqa: E702
    return other + number


def keeps_an_item(owner: Any, x: Any) -> None:
    owner.kept = x[0]


def keeps_a_comparison(owner: Any, x: Any) -> None:
    owner.kept = x <= 2


def counts_an_attribute(owner: Any) -> None:
    owner.number += 1


def counts_an_item(table: Any) -> None:
    table["number"] *= 2


def counts_a_global() -> None:
    global TOTAL
    TOTAL += 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (counts_its_own, False),
        (counts_its_own_and_sets_another, False),
        (keeps_an_item, False),
        (keeps_a_comparison, False),
        (counts_an_attribute, True),
        (counts_an_item, True),
        (counts_a_global, True),
    ],
)
def test_only_augmented_assignments_to_what_is_not_its_own_count(function: Callable[..., Any], expected: bool) -> None:
    assert counts(function.__code__) is expected
