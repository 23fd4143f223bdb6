"""Rules on tensors become programs: the steps that NumPy's kernels would take, with numbers as inputs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from flambeau._codegen.expr import Untraceable
from flambeau._dispatch.abstract import tracing
from flambeau._dispatch.abstract.tracing import traced_rule as traced

_TOLD: list[Any] = []


def test_a_rule_becomes_steps() -> None:
    def rule(number: float, param: Any, grad: Any) -> None:
        param.add_(grad, alpha=-number)

    program, changed, numbers = traced(rule, 0.5, "float32", 2)
    assert [step[0] for step in program.steps] == ["input", "input", "input", "multiply", "add"]
    assert program.steps[-1] == ("add", "float32", 0, 3)
    assert program.results == (4,)
    assert changed == (0,)
    assert numbers == [-0.5]


def test_numbers_are_no_part_of_the_program() -> None:
    def rule(number: float, param: Any, grad: Any) -> None:
        param.lerp_(grad, number).mul_(number).addcdiv_(grad, param.sqrt() + number, value=number)

    first, second = (traced(rule, number, "float32", 2) for number in (0.1, 0.2))
    assert first[0] == second[0]
    assert hash(first[0]) == hash(second[0])
    assert first[2] != second[2]


def test_interpolation_begins_at_the_nearer_end() -> None:
    def rule(number: float, param: Any, grad: Any) -> None:
        param.lerp_(grad, number)

    near, far = (traced(rule, number, "float32", 2)[0].steps[-1] for number in (0.25, 0.75))
    assert near[0] == "add"
    assert far[0] == "subtract"


def test_half_precision_is_rounded_after_each_op() -> None:
    def rule(_: None, param: Any, grad: Any) -> None:
        param.add_(grad, alpha=0.1)

    names = [step[0] for step in traced(rule, None, "bfloat16", 2)[0].steps]
    assert names.count("round_bfloat16") == 3  # of the number, of the product, of the sum


def test_what_a_name_was_bound_to_before_a_change_changes_with_it() -> None:
    def rule(_: None, param: Any, grad: Any) -> None:
        same, copy = param.detach(), param.clone()
        param.mul_(2.0)
        grad.copy_(same - copy)

    program, changed, _ = traced(rule, None, "float64", 2)
    assert changed == (0, 1)
    product = program.results[0]
    assert program.steps[program.results[1]] == ("subtract", "float64", product, 0)


def test_a_rule_that_changes_nothing() -> None:
    program, changed, numbers = traced(lambda _, param: param * 2.0, None, "float32", 1)
    assert (program.results, changed, numbers) == ((), (), [2.0])


@pytest.mark.parametrize(
    "rule",
    [
        lambda _, param: param.add_(1.0) if param else None,
        lambda _, param: param.add_(1.0) if param == 0 else None,
        lambda _, param: param.mul_(param < 0),
        lambda _, param: param.exp_(),
        lambda _, param: param.mul_("two"),
        lambda _, param: param.mul_(True),
        lambda _, param: param.mul_(1j),
        lambda _, param: param.lerp_(param, param),
        lambda _, param: param.add_(2.0, alpha=3.0),
        lambda _, param: param.maximum(0.0),
        lambda _, param: param.mul_(param.shape[0]),
    ],
)
def test_what_has_no_place_in_a_program(rule: Any) -> None:
    with pytest.raises(Untraceable):
        traced(rule, None, "float32", 1)


def test_numbers_follow_from_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(step: float, param: Any, grad: Any) -> None:
        _TOLD.append(step)
        if step > 3:
            param.mul_(0.5)
        param.add_(grad, alpha=-(0.1 / (1 - 0.9**step)))

    monkeypatch.setattr(tracing, "_TRACED", {})
    _TOLD.clear()
    for step in (1.0, 2.0, 3.0, 4.0, 5.0, 2.0):
        program, changed, numbers = traced(rule, step, "float32", 2)
        assert changed == (0,)
        assert numbers == [*([0.5] if step > 3 else []), -(0.1 / (1 - 0.9**step))]
        assert [each[0] for each in program.steps].count("multiply") == (2 if step > 3 else 1)
    # The first time as it is, then once for each way that it takes, and takes again.
    assert [getattr(each, "value", each) for each in _TOLD] == [1.0, 2.0, 4.0, 2.0]


def test_a_rule_may_do_with_a_step_what_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(step: float, param: Any) -> None:
        param.mul_(math.sqrt(step))

    monkeypatch.setattr(tracing, "_TRACED", {})
    assert [traced(rule, step, "float32", 1)[2] for step in (1.0, 4.0, 9.0)] == [[1.0], [2.0], [3.0]]
