"""Checks an answer to the lesson about derivatives."""

from __future__ import annotations

import math
from typing import Any

import flambeau

from ...func import grad as grad_of
from ...func import vmap
from ..checking import Steps, Wrong

STEPS = Steps()
torch: Any = flambeau
_ON_TENSORS = (
    "A formula computes with tensors, by their methods and operators: (-other).exp(), not np.exp(-other). Its "
    "parameters are "
    "called grad, self, other, result."
)


def _leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def _compare(which: str, got: float, right: float, lost_grad: float) -> None:
    if math.isclose(got, right, rel_tol=1e-9):
        return
    start = f"The gradient of {which} should be {right:.4f} where x = 2, rate = 0.5 and grad = 3; yours is {got:.4f}."
    if math.isclose(got, -right, rel_tol=1e-9):
        raise Wrong(f"{start} The sign is wrong: exp(-rate) has the derivative -exp(-rate).")
    if math.isclose(abs(got), abs(lost_grad), rel_tol=1e-9):
        raise Wrong(f"{start} Is `grad` in it? The chain rule multiplies what arrives by the op's own derivative.")
    raise Wrong(f"{start} Differentiate x * exp(-rate) by {which}, and multiply by grad.")


def _gradient(of_rate: bool) -> float:
    x, rate = _leaf(2.0), _leaf(0.5)
    wanted, constant = (rate, x.detach()) if of_rate else (x, rate.detach())
    result = torch.attenuate(*((constant, wanted) if of_rate else (wanted, constant)))
    (gradient,) = torch.autograd.grad(result, wanted, torch.tensor([3.0], dtype=torch.float64))
    return float(gradient)


@STEPS.step("the gradient of x is right", _ON_TENSORS)
def of_x(answer: Any) -> None:
    """The first formula at one point."""
    _compare("x", _gradient(False), 3 * math.exp(-0.5), math.exp(-0.5))


@STEPS.step("the gradient of rate is right", _ON_TENSORS)
def of_rate(answer: Any) -> None:
    """The second formula at one point."""
    _compare("rate", _gradient(True), -3 * 2 * math.exp(-0.5), -2 * math.exp(-0.5))


@STEPS.step("gradcheck: the formulas agree with finite differences", _ON_TENSORS)
def numerical(answer: Any) -> None:
    """All elements, and broadcasting."""
    if not torch.autograd.gradcheck(
        torch.attenuate, (_leaf(1.0, -2.0, 0.3), _leaf(0.1, 0.5, 2.0)), raise_exception=False
    ):
        raise Wrong(
            "gradcheck compares with finite differences and finds others: is the formula right for every element?"
        )
    if not torch.autograd.gradcheck(torch.attenuate, (_leaf(1.0, -2.0, 0.3), _leaf(0.5)), raise_exception=False):
        raise Wrong(
            "With a rate that is broadcast the gradient is wrong. The engine sums gradients of broadcast operands "
            "to their "
            "shape: a formula must not do it too."
        )


@STEPS.step("the formulas leave what they are given alone", _ON_TENSORS)
def nothing_changed(answer: Any) -> None:
    """The incoming gradient belongs to others."""
    for of_rate in (False, True):
        x, rate, arriving = _leaf(2.0), _leaf(0.5), torch.tensor([3.0], dtype=torch.float64)
        result = torch.attenuate(x, rate)
        torch.autograd.grad(result, rate if of_rate else x, arriving)
        if arriving.item() != 3.0 or not math.isclose(result.item(), 2 * math.exp(-0.5)):
            raise Wrong(
                "A formula changes grad or result in place (mul_, *=): others read the same tensor. Return a new one."
            )


@STEPS.step("gradgradcheck: derivatives of derivatives follow by themselves", _ON_TENSORS)
def twice(answer: Any) -> None:
    """Second derivatives."""
    if not torch.autograd.gradgradcheck(torch.attenuate, (_leaf(1.0, -2.0), _leaf(0.1, 0.5)), raise_exception=False):
        raise Wrong(
            "The first derivative is right, the second is not: something in a formula is cut off from the graph "
            "(detach, "
            ".data, no_grad, item). Formulas are differentiated too."
        )


@STEPS.step("only what is needed is kept until backward()")
def saved(answer: Any) -> None:
    """What the node saves."""
    node = torch.attenuate(_leaf(2.0).detach(), _leaf(0.5)).grad_fn
    kept = [name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")]
    if "self" in kept:
        raise Wrong(
            "For the gradient of rate the graph keeps x (its formula names `self`): memory that nobody needs. "
            "result is "
            "x * exp(-rate) already, and somebody holds it anyway: name `result` instead."
        )


@STEPS.step("vmap(grad(f)) and compile differentiate it too")
def transforms(answer: Any) -> None:
    """Per-example gradients, and a compiled loss."""
    x, rate = torch.randn(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    found = vmap(grad_of(lambda a, b: torch.attenuate(a, b), argnums=1))(x, rate)
    if not torch.allclose(found, -x * (-rate).exp()):
        raise Wrong("Gradients of single examples, vmap(grad(attenuate)), are wrong: does a formula look at shapes?")
    compiled = torch.compile(lambda a, b: torch.attenuate(a, b).sum())
    for _ in range(5):
        leaf = rate.clone().requires_grad_()
        compiled(x, leaf).backward()
        if not torch.allclose(leaf.grad, found):
            raise Wrong("The compiled loss has other gradients than the plain one: does a formula keep state?")
