"""Tracing NumPy bodies into programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flambeau._codegen.expr import Program, Untraceable, trace_body

SINGLE = np.dtype(np.float32)


def names(program: Program) -> list[str]:
    return [step[0] for step in program.steps]


def test_steps_carry_the_types_that_numpy_uses() -> None:
    program = trace_body(lambda x: x / (1 + np.exp(-x)), [SINGLE])
    assert names(program) == ["input", "negative", "exp", "constant", "add", "divide"]
    assert program.result_types() == ["float32"]


@pytest.mark.parametrize(
    ("body", "given", "result"),
    [
        (lambda x: x * 2.5, "float32", "float32"),
        (lambda x: x * np.float64(2.5), "float32", "float64"),
        (lambda x: x > 0, "float64", "bool"),
        (lambda x: np.where(x > 0, x, 0), "float32", "float32"),
        (lambda x: x.astype(np.float64), "int32", "float64"),
        (lambda x: np.sqrt(x), "int64", "float64"),
        (lambda x: x + True, "int8", "int8"),
        (lambda x: np.maximum(x, 0, dtype=x.dtype), "float32", "float32"),
        (lambda x: np.clip(x, -1, 1), "float32", "float32"),
        (lambda x: np.full_like(x, 3), "float32", "float32"),
    ],
)
def test_result_types(body: Any, given: str, result: str) -> None:
    dtype = np.dtype(given)
    assert trace_body(body, [dtype]).result_types() == [result]
    assert body(np.ones(3, dtype)).dtype == result


def test_equal_bodies_are_equal_programs_even_with_nan() -> None:
    first, second = (trace_body(lambda x: np.where(x > 0, x, float("nan")), [SINGLE]) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == repr(second)


def test_common_steps_are_taken_once() -> None:
    assert names(trace_body(lambda x: np.exp(x) * np.exp(x), [SINGLE])).count("exp") == 1


def test_results_written_over_an_operand() -> None:
    def body(x: Any) -> Any:
        result = np.negative(x)
        np.exp(result, result)
        np.add(result, 1, result)
        return np.true_divide(1, result, result)

    assert names(trace_body(body, [SINGLE])) == ["input", "negative", "exp", "constant", "add", "divide"]


@pytest.mark.parametrize(
    "body",
    [
        lambda x: x.sum(),
        lambda x: np.add.reduce(x),
        lambda x: x if x > 0 else -x,
        lambda x: x[::2],
        lambda x: np.cumsum(x),
        lambda x: x + np.arange(3.0),
        lambda x: x * 1j,
        lambda x: np.asarray(x) + 1,
        lambda x: x.shape[0],
        lambda x: 3.0,
        lambda x: x.reshape(-1),
    ],
)
def test_what_is_not_elementwise_is_refused(body: Any) -> None:
    with pytest.raises(Untraceable):
        trace_body(body, [SINGLE])
