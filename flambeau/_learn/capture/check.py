"""Checks an answer to the lesson about captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau

from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau
_ADVICE = (
    "run gets an op and its arguments, tensors and others, in a tuple or list; op(*args) gives a tensor or a tuple "
    "of them. "
    "Write down numbers in place of tensors, in lists too, and look them up when you run the program."
)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return bool(left.shape == right.shape and torch.allclose(left, right))
    if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
        return len(left) == len(right) and all(map(_same, left, right))
    return False


def _compare(
    answer: Any, function: Callable[..., Any], examples: tuple[Any, ...], others: tuple[Any, ...], about: str
) -> None:
    program = asked_for(answer, "capture")(function, *examples)
    first, right = function(*examples), function(*others)
    if not _same(program(*examples), first):
        raise Wrong(
            f"{about}: on the inputs of the capture the program gives {program(*examples)!r}, the function {first!r}."
        )
    got = program(*others)
    if _same(got, right):
        return
    if _same(got, first):
        raise Wrong(
            f"{about}: on other inputs the program gives the result for the old ones. It holds the tensors of the "
            "capture: note "
            "a number for each tensor, and put the new inputs and results under these numbers."
        )
    raise Wrong(f"{about}: on other inputs the function gives {right!r}, the program {got!r}.")


@STEPS.step("the function runs as usual while it is captured", "run must return what op(*args) returns.")
def runs(answer: Any) -> None:
    """run returns the op's results."""
    seen = []

    def function(x: Any) -> Any:
        seen.append(x * 2 + 1)
        return seen[-1]

    asked_for(answer, "capture")(function, torch.ones(2))
    if not isinstance(seen[0], torch.Tensor) or seen[0].tolist() != [3.0, 3.0]:
        raise Wrong(
            f"While it is captured, x * 2 + 1 for x = 1 gives {seen[0]!r}: run must return what op(*args) returns."
        )


@STEPS.step("the program gives the function's result, for other inputs too", _ADVICE)
def replays(answer: Any) -> None:
    """A small chain."""
    _compare(
        answer,
        lambda x, y: (x * y).exp() + x,
        (torch.ones(3), torch.zeros(3)),
        (torch.rand(3), torch.rand(3)),
        "(x * y).exp() + x",
    )


@STEPS.step("without the function's Python", _ADVICE)
def no_python(answer: Any) -> None:
    """The function itself is not called again."""
    calls = []

    def function(x: Any) -> Any:
        calls.append(1)
        return x + 1

    program = asked_for(answer, "capture")(function, torch.ones(2))
    program(torch.zeros(2))
    if len(calls) != 1:
        raise Wrong(f"The function ran {len(calls)} times: the program must run the recorded ops, not the function.")


@STEPS.step("lists of tensors are arguments like others", _ADVICE)
def lists(answer: Any) -> None:
    """An op that takes a list."""
    _compare(
        answer,
        lambda x, y: torch.cat([x, y * 2, x]),
        (torch.ones(2), torch.ones(1)),
        (torch.rand(2), torch.rand(1)),
        "torch.cat([x, y * 2, x]), whose first argument is a list of tensors",
    )


@STEPS.step("ops with several results", _ADVICE)
def several(answer: Any) -> None:
    """A tuple of results."""

    def function(x: Any) -> Any:
        values, positions = x.topk(2)
        return values * positions

    _compare(
        answer,
        function,
        (torch.tensor([3.0, 1.0, 2.0]),),
        (torch.tensor([1.0, 5.0, 9.0]),),
        "values, positions = x.topk(2)",
    )


@STEPS.step("tensors of the outside are looked at anew", _ADVICE)
def weights(answer: Any) -> None:
    """A weight that is changed in place between the calls."""
    weight = torch.ones(2)
    program = asked_for(answer, "capture")(lambda x: x * weight, torch.ones(2))
    weight.fill_(5.0)
    got = program(torch.ones(2))
    if got.tolist() != [5.0, 5.0]:
        raise Wrong(
            f"A weight that the function takes from outside became 5, the program still gives {got.tolist()}: keep "
            "the tensor, no copy."
        )


@STEPS.step("many short-lived tensors are not taken for one another", _ADVICE)
def identities(answer: Any) -> None:
    """An id is only somebody's while he lives."""

    def function(x: Any) -> Any:
        total = x * 0
        for number in range(50):
            total = total + (x * number).sin()
        return total

    _compare(
        answer,
        function,
        (torch.rand(3),),
        (torch.rand(3),),
        "a loop with many temporary results; an id() is given to another object when its owner is gone, so keep "
        "what you number",
    )


@STEPS.step("a training step: derivatives are ops as well", _ADVICE)
def derivative(answer: Any) -> None:
    """backward() inside the captured function."""

    def function(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        loss = (leaf.sin() * leaf).sum()
        (gradient,) = torch.autograd.grad(loss, leaf)
        return x - 0.1 * gradient

    _compare(answer, function, (torch.rand(3),), (torch.rand(3),), "a step of gradient descent")
