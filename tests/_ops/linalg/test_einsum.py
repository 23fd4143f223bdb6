"""`einsum` of two operands, whose plan is kept: values, strides and gradients beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome

EQUATIONS = [
    "ij,ij->i", "ij,jk->ik", "ij,kj->ki", "bij,bkj->bki", "ij,ij->", "i,i->", "i,j->ij", "bqhd,bkhd->bhqk",
    "bhqk,bkhd->bqhd", "ij,jk->ki", "abc,cd->dab", "abcd,cbe->eda", "ii,ij->j", "ij,ik->k", "ij,jk", "ij,jk->ikj",
]  # fmt: skip
SIZES = {letter: 2 + number % 4 for number, letter in enumerate("abcdehijkq")}


@pytest.mark.parametrize("equation", EQUATIONS)
@differential
def test_two_operands(T: Any, equation: str) -> Any:
    T.manual_seed(3)
    shapes = [[SIZES[each] for each in labels] for labels in equation.split("->", maxsplit=1)[0].split(",")]
    operands = [T.rand(shape, dtype=T.float64) for shape in shapes]
    twice = [T.einsum(equation, *operands) for _ in range(2)]  # the second time by the plan that was made
    recorded = [each.requires_grad_() for each in operands]
    result = T.einsum(equation, *recorded)
    return [twice, *T.autograd.grad((result * result).sum(), recorded)]


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bqhd,bkhd->bhqk", "abcd,cbe->eda"])
@differential
def test_a_parameter_and_the_last_nodes(T: Any, equation: str) -> Any:
    T.manual_seed(3)
    shapes = [[SIZES[each] for each in labels] for labels in equation.split("->", maxsplit=1)[0].split(",")]
    given, weight = T.rand(shapes[0]), T.nn.Parameter(T.rand(shapes[1]))
    result = T.einsum(equation, given, weight)
    with T.no_grad():
        plain = T.einsum(equation, given, weight)
    before = result.grad_fn.next_functions[0][0]
    return [result, plain, result.stride(), plain.stride(), result.grad_fn.name(), before.name()]


@differential
def test_what_does_not_fit(T: Any) -> Any:
    T.einsum("ij,jk->ik", T.ones(2, 3), T.ones(3, 2))
    return outcome(lambda: T.einsum("ij,jk->ik", T.ones(2, 3), T.ones(4, 2)), "does not broadcast")
