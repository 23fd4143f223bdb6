"""`testing.assert_close` accepts and refuses what PyTorch's does."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome

PAIRS = """
T.tensor([1.0, 2.0]), T.tensor([1.0, 2.0 + 1e-6])|T.tensor([1.0, 2.0]), T.tensor([1.0, 2.1])
T.tensor([1.0]), T.tensor([1.0], dtype=T.float64)|T.tensor([1, 2]), T.tensor([1, 2])|T.tensor([1, 2]), T.tensor([1, 3])
T.tensor([float("nan")]), T.tensor([float("nan")])|T.tensor([float("inf")]), T.tensor([float("inf")])|1.0, 1.0 + 1e-9
1.0, 1.1|[T.ones(2), 1], [T.ones(2), 1]|[T.ones(2)], [T.ones(2), 1]|{"a": T.ones(1)}, {"a": T.ones(1)}
{"a": T.ones(1)}, {"b": T.ones(1)}|T.ones(2), T.ones(3)
T.ones(2, dtype=T.bfloat16), T.full((2,), 1.01, dtype=T.bfloat16)
T.tensor([1 + 1j]), T.tensor([1 + 1.5j])|T.tensor(True), T.tensor(False)|T.zeros(0), T.zeros(0)|"a", "a"
T.tensor([2**62]), T.tensor([2**62 + 1])|(T.ones(1), {"x": [T.zeros(1)]}), (T.ones(1), {"x": [T.ones(1)]})
"""


@pytest.mark.parametrize("pair", PAIRS.strip().replace("\n", "|").split("|"))
@differential
def test_same_verdict(T: Any, pair: str) -> Any:
    actual, expected = eval(f"({pair})", {"T": T, "float": float})
    return outcome(lambda: T.testing.assert_close(actual, expected))[:2]


@differential
def test_options(T: Any) -> Any:
    nan, one = T.tensor([float("nan")]), T.tensor([1.0])
    check = T.testing.assert_close
    return [
        outcome(lambda: check(nan, nan, equal_nan=True))[:2],
        outcome(lambda: check(one, one + 0.5, rtol=0, atol=1))[:2],
        outcome(lambda: check(one, one, rtol=0))[:2],
        outcome(lambda: check(one, one.double(), check_dtype=False))[:2],
        outcome(lambda: check(T.ones(2, 2), T.ones(2, 2).t(), check_stride=True))[:2],
        outcome(lambda: check(one, one + 1, msg="mine"), "mine"),
    ]


def test_the_message_names_the_worst_element() -> None:
    with pytest.raises(AssertionError, match=r"(?s)1 / 3 \(33.3%\).*index \(1,\).*got 2.0, expected 5.0"):
        flambeau.testing.assert_close(flambeau.tensor([1.0, 2.0, 3.0]), flambeau.tensor([1.0, 5.0, 3.0]))
