"""The comparison itself must be able to fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch as pytorch

from tests.support.differential import compare, describe, differences, outcome, supported, warned

NAN = float("nan")


def tensor_description(value: float, dtype: str) -> dict[str, Any]:
    return {"tensor": [value], "dtype": dtype}


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 2),
        (1, 1.0),
        (True, 1),
        (1.0, 1.00001),
        (NAN, 1.0),
        (1.0, NAN),
        ("a", "b"),
        ([1, 2], [1, 3]),
        ([1, 2], [1]),
        ([1], 1),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 2}),
        (1j, 2j),
        (None, 0),
        (tensor_description(1.0, "torch.float64"), tensor_description(1.0 + 1e-9, "torch.float64")),
        (tensor_description(1.0, "torch.bfloat16"), tensor_description(1.03, "torch.bfloat16")),
        (tensor_description(0.0, "torch.bfloat16"), tensor_description(0.001, "torch.bfloat16")),
    ],
)
def test_finds_a_difference(expected: Any, actual: Any) -> None:
    assert list(differences(expected, actual))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1.0, 1.0 + 1e-8),
        (NAN, NAN),
        (float("inf"), float("inf")),
        ([1, (2, "a")], [1, (2, "a")]),
        (tensor_description(1.0, "torch.bfloat16"), tensor_description(1.0078125, "torch.bfloat16")),
    ],
)
def test_finds_no_difference(expected: Any, actual: Any) -> None:
    assert not list(differences(expected, actual))


def test_no_tolerance_means_the_same_bits() -> None:
    assert list(differences(1.0, 1.0 + 1e-15, tolerance=0.0))
    assert list(differences(0.0, -0.0, tolerance=0.0))
    assert not list(differences(NAN, NAN, tolerance=0.0))


def test_tensors_are_described_whole() -> None:
    leaf = pytorch.ones(2, requires_grad=True)
    result = leaf * 2
    assert describe(leaf) != describe(leaf.detach())
    assert describe(result)["grad_fn"] == "MulBackward0"
    assert describe(pytorch.ones(2, 2)) == describe(pytorch.ones(2, 2))
    assert describe(pytorch.ones(2, 3).t()) != describe(pytorch.ones(3, 2))


def fail(message: str) -> None:
    raise ValueError(message)


def test_outcomes() -> None:
    assert outcome(lambda: 3) == ("value", 3)
    assert outcome(lambda: fail("a b"), "a", "c") == ("error", "ValueError", ("a",))
    assert supported(lambda: 3) == ("value", 3)
    assert list(differences(supported(lambda: fail("x not implemented for 'Half'")), 5)) == []


def test_words_that_pytorch_does_not_say_fail_the_test() -> None:
    for scenario in (
        lambda T: outcome(lambda: T.ones(2).view(3), "no such words"),
        lambda T: {"nested": [outcome(lambda: T.ones(2), "an error")]},
        lambda T: warned(lambda: T.ones(2), "a warning"),
    ):
        with pytest.raises(AssertionError, match="other words than PyTorch's"):
            compare(scenario)


def test_compare_reports_the_difference() -> None:
    with pytest.raises(AssertionError, match="in PyTorch"):
        compare(lambda T: T.__name__)
