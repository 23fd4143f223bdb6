"""Calls that are one kernel when compiled: elementwise ones, those behind a normalisation, losses of classes."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn

from .beside import CALLS, Compile, Program, drawn, results, same

PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def _chain(compile: Compile, given: Callable[[], Any]) -> Any:
    @compile
    def function(x: Any, y: Any) -> Any:
        z = (x * 1.1 + y).tanh() * y
        return z - x, z

    for _ in range(CALLS):
        x, y = (given().requires_grad_() for _ in range(2))
        first, second = function(x, y)
        (first * second).sum().backward()
        yield first.detach(), second.detach(), x.grad, y.grad


@program
def a_chain_with_channels_last(compile: Compile) -> Any:
    yield from _chain(compile, lambda: drawn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last))


@program
def more_arrays_than_a_kernel_takes(compile: Compile) -> Any:
    @compile
    def function(*given: Any) -> Any:
        total = given[0] * 2
        for each in given[1:]:
            total = total + each
        return total.relu()

    for _ in range(CALLS):
        yield function(*[drawn(3, 4) for _ in range(9)])


@program
def constants_of_the_device(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2 + torch.eye(3, device="cuda")).exp())
    for _ in range(CALLS):
        yield function(drawn(3, 3))


@program
def normalised_lines(compile: Compile) -> Any:
    first, second = (nn.BatchNorm2d(8).cuda().bfloat16() for _ in range(2))

    @compile
    def function(x: Any) -> Any:
        y = first(x).relu()
        return (second(y) + y).relu()

    for number in range(CALLS + 4):
        if number == CALLS:
            first.eval()
        x = drawn(2, 8, 3, 5).bfloat16().contiguous(memory_format=torch.channels_last).requires_grad_()
        found = function(x)
        found.square().sum().backward()
        yield found.detach(), x.grad
    yield first.weight.grad, *[each.detach() for each in second.buffers()]


@program
def what_is_added_changes_in_between(compile: Compile) -> Any:
    norm = nn.BatchNorm2d(8).cuda()
    kept = drawn(2, 8, 3, 5)

    @compile
    def function(x: Any) -> Any:
        y = norm(x)
        kept.copy_(x)
        return (y + kept).relu() * 2

    with torch.no_grad():
        for _ in range(CALLS):
            yield function(drawn(2, 8, 3, 5))


@program
def normalised_planes(compile: Compile) -> Any:
    norm = nn.BatchNorm2d(8).cuda()

    @compile
    def function(x: Any) -> Any:
        y = norm(x)
        return (y * 3 - x).relu(), y.sum()

    with torch.no_grad():
        for _ in range(CALLS):
            yield function(drawn(2, 8, 3, 5))


def test_what_follows_a_normalisation_is_part_of_its_kernel() -> None:
    """What is added to what is normalised, say, and the rectifier behind that."""
    norm = nn.BatchNorm2d(8).cuda()

    @torch.compile
    def function(x: Any) -> Any:
        y = x.exp()
        return (norm(y) + y).relu() * 2

    with torch.no_grad():
        for _ in range(CALLS):
            function(drawn(2, 8, 3, 5))
    inside = torch.compiler.explain(function).partition("def segment")[2]
    assert "# native_batch_norm, add, relu, mul" in inside


def test_elementwise_calls_become_one_kernel() -> None:
    """Three steps of arithmetic are one launch, and what lies between is nowhere."""
    function = torch.compile(lambda x, y: (x * 2 + y).exp() - x)
    for _ in range(CALLS):
        function(drawn(5, 7), drawn(5, 7))
    inside = torch.compiler.explain(function).partition("def segment")[2]
    assert inside.count(" = k") == 1, inside
    assert "# mul, add, exp, sub" in inside


@pytest.mark.parametrize(("reduction", "classes"), [("sum", 56), ("mean", 57)])
def test_the_loss_of_many_classes_is_not_written_down(reduction: str, classes: int) -> None:
    """In 16-bit floats it is computed from the logits, whose odd rows lie apart: as exact as in steps."""
    torch.manual_seed(0)
    given = (torch.randn(2, 5, 16) * 2).cuda().bfloat16()
    wanted = torch.tensor([3, 0, 7, -100, 55, 1, 2, 54, 5, 6]).cuda()
    head = nn.Linear(16, classes, bias=False).cuda().bfloat16()

    def found(compile: Compile, exact: bool) -> list[Any]:
        model = copy.deepcopy(head)
        model = model.double() if exact else model
        x = (given.double() if exact else given).clone().requires_grad_()

        @compile
        def step() -> Any:
            loss = nn.functional.cross_entropy(model(x).view(-1, classes), wanted, reduction=reduction)
            loss.backward()
            return loss

        for _ in range(CALLS):
            x.grad = model.weight.grad = None
            loss = step().detach()
        if compile is torch.compile:
            assert "# log_softmax_backward" in torch.compiler.explain(step)
            assert "= k" not in "".join(re.findall("(.*)# log_softmax$", torch.compiler.explain(step), re.MULTILINE))
        return [loss, x.grad, model.weight.grad]

    exact = found(lambda each: each, True)
    for ours, steps, right in zip(found(torch.compile, False), found(lambda each: each, False), exact, strict=True):
        assert ours.stride() == steps.stride()
        deviation, usual = ((each.double() - right).norm() / right.norm() for each in (ours, steps))
        assert deviation <= max(1.2 * usual, torch.tensor(2.0**-8))


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_calls_are_those_of_the_function(name: str) -> None:
    """Whatever changes between calls."""
    assert same(results(PROGRAMS[name], torch.compile), results(PROGRAMS[name], lambda function: function))
