"""Checks an answer to the lesson about the backward pass: beside the engine, on the engine's own graphs."""

from __future__ import annotations

from typing import Any

import flambeau

from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau
_ADVICE = (
    "A node is called with the gradients of its outputs, and returns those of its inputs: one tensor, or a tuple "
    "with one "
    "for each entry of next_functions. Entries whose node is None are skipped."
)


def _compare(answer: Any, result: Any, leaves: dict[str, Any], about: str) -> None:
    grad = torch.ones_like(result)
    right = torch.autograd.grad(result, list(leaves.values()), grad, retain_graph=True)
    got = asked_for(answer, "gradients")(result, grad)
    if not isinstance(got, dict):
        raise Wrong(f"gradients returns a dict from leaves to their gradients; yours returns {type(got).__name__}.")
    for (name, leaf), wanted in zip(leaves.items(), right, strict=True):
        found = next((value for key, value in got.items() if key is leaf), None)
        if found is None:
            raise Wrong(
                f"{about}: there is no gradient for the leaf {name}. Its key is node.variable of its AccumulateGrad."
            )
        if found.shape != wanted.shape or not torch.allclose(found, wanted):
            raise Wrong(f"{about}: the gradient of {name} is {wanted.tolist()}, yours is {found.tolist()}.")


def _leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@STEPS.step("a chain", _ADVICE)
def chain(answer: Any) -> None:
    """One op after the other, with a constant."""
    x = _leaf(0.5, 2.0)
    _compare(answer, (x.exp() * 3).sum(), {"x": x}, "(x.exp() * 3).sum()")


@STEPS.step("two leaves", _ADVICE)
def two(answer: Any) -> None:
    """An op with two inputs."""
    x, y = _leaf(0.5, 2.0), _leaf(3.0, 4.0)
    _compare(answer, (x * y).sum(), {"x": x, "y": y}, "(x * y).sum()")


@STEPS.step("a leaf that is used twice", _ADVICE)
def leaf_used_twice(answer: Any) -> None:
    """Gradients of one tensor add up."""
    x = _leaf(2.0)
    _compare(
        answer, (x * x + x).sum(), {"x": x}, "(x * x + x).sum(), where x is used three times: its gradients add up"
    )


@STEPS.step("a result that is used twice", _ADVICE)
def diamond(answer: Any) -> None:
    """A node waits for all its gradients, and runs once."""
    x = _leaf(1.1)
    y = x.exp()
    about = (
        "y = x.exp(); (y * y.sin()).sum(), where y is used twice: a node runs when all its gradients have arrived, "
        "on their sum"
    )
    _compare(answer, (y * y.sin()).sum(), {"x": x}, about)
    y, ran = _counted(x)
    for _ in range(10):
        y = y.sin() * y
    asked_for(answer, "gradients")(y, torch.ones_like(y))
    if len(ran) > 1:
        raise Wrong(
            f"In ten steps of y = y.sin() * y the node below them runs {len(ran)} times, once for each path to it: "
            "with more "
            "steps that takes for ever. Count first how many gradients each node will get, and run it when they "
            "are there."
        )


def _counted(x: Any) -> tuple[Any, list[int]]:
    """A tensor like `x`, and a list that grows whenever the gradient of the node that made it is asked for."""
    ran: list[int] = []

    class Counted(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            ran.append(1)
            return grad

    return Counted.apply(x), ran


@STEPS.step("an op with several results", _ADVICE)
def several_results(answer: Any) -> None:
    """The number in an edge says which output it is."""
    x = _leaf(1.0, 2.0, 3.0)
    first, _, last = (x * 2).unbind()
    about = (
        "first, _, last = (x * 2).unbind(); first * last ** 2: the number in next_functions says which result an "
        "edge is"
    )
    _compare(answer, first * last**2, {"x": x}, about)


@STEPS.step("broadcasting", _ADVICE)
def broadcasting(answer: Any) -> None:
    """The gradient of a broadcast operand is summed to its shape."""
    x, row = _leaf(1.0, 2.0, 3.0), torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    about = (
        "(x.exp() * y).sum(), where x has shape [3] and y [2, 3]: sum gradients to node.outputs[number][0], the shape"
    )
    _compare(answer, (x.exp() * row).sum(), {"x": x, "y": row}, about)


@STEPS.step("a long chain", "A graph may be deeper than Python's stack: keep a list of nodes in place of recursion.")
def long(answer: Any) -> None:
    """No recursion."""
    x = _leaf(1.0)
    y = x
    for _ in range(3000):
        y = y + 0.001
    _compare(answer, y.sum(), {"x": x}, "3000 additions")


@STEPS.step("a network with a shared weight, trained with your gradients", _ADVICE)
def network(answer: Any) -> None:
    """The answer in place of backward() in a training loop."""
    torch.manual_seed(0)
    gradients = asked_for(answer, "gradients")
    weight = (torch.randn(4, 4) / 2).requires_grad_()
    out = torch.nn.Linear(4, 1)
    x = torch.randn(64, 4)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.mse_loss(out((x @ weight).tanh() @ weight), y)
        found = gradients(loss, torch.ones(()))
        with torch.no_grad():
            for leaf, gradient in found.items():
                leaf -= 0.1 * gradient
        losses.append(loss.item())
    if losses[-1] > losses[0] / 3:
        raise Wrong(
            f"With your gradients the loss of a small network goes from {losses[0]:.2f} to {losses[-1]:.2f} only."
        )
