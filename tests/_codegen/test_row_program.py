"""Row programs: in how many passes a row is gone through, and what one pass keeps for another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from flambeau._codegen.row_program import COLUMN, ELEMENT, ROW, RowProgram, RowTrace, costly, passes
from flambeau._codegen.rows import programs
from flambeau._codegen.rows.in_lanes import rows_in_lanes
from flambeau._codegen.rows.one_by_one import rows_one_by_one


def _names(program: RowProgram, steps: tuple[int, ...]) -> list[str]:
    return [program.steps[number][0] for number in steps]


def test_a_sum_is_known_one_pass_later() -> None:
    program = programs.softmax("float32", False)
    first, second, third = passes(program)
    assert _names(program, first.reductions) == ["largest"]
    assert _names(program, second.each) == ["load", "subtract", "exp"]
    assert _names(program, second.reductions) == ["sum"]
    assert _names(program, third.each) == ["load", "subtract", "exp", "multiply"]
    assert not third.reductions


def test_what_is_costly_is_kept() -> None:
    program = programs.softmax("float32", False)
    kept = costly(program)
    assert _names(program, kept) == ["exp"]
    _, second, third = passes(program, kept)
    assert second.keeps == third.found == kept
    assert _names(program, third.each) == ["multiply"]
    assert not costly(programs.softmax("float32", True))  # only one pass wants it


def test_what_a_later_pass_computes_first_is_found_by_those_after_it() -> None:
    rows = RowTrace("float32")
    x = rows.load("x")
    power = np.exp(x)
    first = rows.sum(power * rows.sum(x))
    rows.store("out", power * first)
    program = rows.finished()
    _, second, third = passes(program, costly(program))
    assert "exp" in _names(program, second.each)
    assert second.keeps == third.found


def test_places_that_are_written_come_first() -> None:
    program = programs.norm_backward("float32", "float32", "float32", True, True, True, True)
    assert [place.has for place in program.places] == [ELEMENT, COLUMN, COLUMN, ELEMENT, ELEMENT, ROW, ROW, COLUMN]
    assert [place.name for place in program.places][:3] == ["of_x", "of_weight", "of_bias"]


@pytest.mark.parametrize("form", [rows_one_by_one, rows_in_lanes])
def test_both_forms_of_contiguous_rows(form: Callable[[RowProgram], Callable[..., None]]) -> None:
    x = np.random.RandomState(0).standard_normal((37, 21)).astype(np.float32)
    weight, bias = x[0] + 1, x[1]
    out, mean, rstd = np.empty_like(x), np.empty(37, np.float32), np.empty(37)
    program = programs.norm("float32", "float32", "float32", True, True, True, "float64")
    mixed = programs.norm("float32", "float32", "float64", True, False, False, "float64")
    form(program)(out, mean, rstd.astype(np.float32), x, weight, bias, 1e-5, 37, 21)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(out, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-5, atol=1e-6)
    form(mixed)(out, rstd, x, weight, 1e-5, 37, 21)
    np.testing.assert_allclose(rstd, 1 / np.sqrt((x * x).mean(1) + 1e-5), rtol=1e-5)
