"""Checks an answer to the lesson about optimizers."""

from __future__ import annotations

from typing import Any

import flambeau

from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau
_ADVICE = (
    "_initial_state returns a dict with a tensor of zeros under the name that _update looks for; the rule changes "
    "param and "
    "momentum in place and returns nothing."
)


def _expected(param: Any, grads: list[Any], lr: float, betas: tuple[float, float], decay: float) -> Any:
    momentum = torch.zeros_like(param)
    for grad in grads:
        direction = (betas[0] * momentum + (1 - betas[0]) * grad).sign()
        param = param * (1 - lr * decay) - lr * direction
        momentum = betas[1] * momentum + (1 - betas[1]) * grad
    return param


def _trained(answer: Any, start: Any, grads: list[Any], **options: Any) -> Any:
    param = start.clone().requires_grad_()
    optimizer = asked_for(answer, "Lion", "class")([param], **options)
    for grad in grads:
        param.grad = grad.clone()
        optimizer.step()
    return param.detach()


@STEPS.step("one step goes by the sign of the gradient", _ADVICE)
def one(answer: Any) -> None:
    """The first step."""
    start = torch.tensor([1.0, 1.0, 1.0])
    got = _trained(answer, start, [torch.tensor([5.0, -0.1, 0.0])], lr=0.1)
    if torch.equal(got, start):
        raise Wrong(
            "After step() the parameter is as before: the rule must change `param` in place (sub_, add_), not "
            "rebind it."
        )
    if not torch.allclose(got, torch.tensor([0.9, 1.1, 1.0])):
        raise Wrong(
            "From [1, 1, 1] a step with lr 0.1 and gradient [5, -0.1, 0] leads to [0.9, 1.1, 1]; yours to "
            f"{got.tolist()}. Only "
            "the sign of the direction counts, and it is subtracted."
        )


@STEPS.step("several steps, with momentum", _ADVICE)
def several(answer: Any) -> None:
    """The momentum of the step before decides."""
    grads = [torch.tensor([1.0, 1.0]), torch.tensor([-0.01, -0.2]), torch.tensor([-0.5, 3.0])]
    options: dict[str, Any] = {"lr": 0.1, "betas": (0.9, 0.99)}
    start = torch.tensor([1.0, 2.0])
    got, right = _trained(answer, start, grads, **options), _expected(start, grads, 0.1, (0.9, 0.99), 0.0)
    if not torch.allclose(got, right):
        raise Wrong(
            f"After three steps the parameter is {right.tolist()}, yours is {got.tolist()}. The direction uses the "
            "momentum of "
            "the steps before, with the first beta; only then the momentum itself moves, with the second."
        )


@STEPS.step("weight decay shrinks the weights, not the gradient", _ADVICE)
def decay(answer: Any) -> None:
    """Decoupled weight decay."""
    start, grads = torch.tensor([1.0, -2.0]), [torch.tensor([0.5, 0.5])]
    got, right = (
        _trained(answer, start, grads, lr=0.1, weight_decay=0.5),
        _expected(start, grads, 0.1, (0.9, 0.99), 0.5),
    )
    if not torch.allclose(got, right):
        raise Wrong(
            f"With weight_decay 0.5 and lr 0.1 the step leads to {right.tolist()}, yours to {got.tolist()}. The "
            "decay multiplies "
            "the parameter by 1 - lr * weight_decay; added to the gradient it would vanish in the sign."
        )


@STEPS.step("groups have options of their own, and parameters without a gradient stay", _ADVICE)
def groups(answer: Any) -> None:
    """Parameter groups."""
    a, b, idle = (torch.ones(2, requires_grad=True) for _ in range(3))
    optimizer = asked_for(answer, "Lion", "class")([{"params": [a, idle]}, {"params": [b], "lr": 0.5}], lr=0.1)
    a.grad, b.grad = torch.ones(2), torch.ones(2)
    optimizer.step()
    if not torch.allclose(a, torch.full((2,), 0.9)) or not torch.allclose(b, torch.full((2,), 0.5)):
        raise Wrong(
            f"A group with lr 0.5 must move by 0.5, one with 0.1 by 0.1; yours moved to {a.tolist()} and "
            f'{b.tolist()}: read group["lr"].'
        )
    if not torch.equal(idle, torch.ones(2)):
        raise Wrong("A parameter without a gradient has changed: take parameters from self._gather(group).")


@STEPS.step("a checkpoint resumes: state_dict() holds the momentum", _ADVICE)
def resume(answer: Any) -> None:
    """The state is the optimizer's state."""
    lion = asked_for(answer, "Lion", "class")
    grads = [torch.tensor([1.0, 1.0]), torch.tensor([-0.01, -0.2])]
    right = _trained(answer, torch.ones(2), grads, lr=0.1)
    first = torch.ones(2, requires_grad=True)
    before = lion([first], lr=0.1)
    first.grad = grads[0]
    before.step()
    second = first.detach().clone().requires_grad_()
    after = lion([second], lr=0.1)
    after.load_state_dict(before.state_dict())
    second.grad = grads[1]
    after.step()
    if not torch.allclose(second, right):
        raise Wrong(
            "Training that is resumed from state_dict() goes another way: the momentum is not in it. What "
            "_initial_state "
            "returns is kept in self.state and saved; attributes of the optimizer are not."
        )


@STEPS.step("a network learns with it, compiled too", _ADVICE)
def network(answer: Any) -> None:
    """Training, eager and with a compiled step."""
    reached = []
    for compiled in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        optimizer = asked_for(answer, "Lion", "class")(net.parameters(), lr=0.01)
        x = torch.randn(64, 4)
        y = x.prod(1, keepdim=True)
        forward = torch.compile(net) if compiled else net
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(forward(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        reached.append(losses[-1])
    if reached[0] > losses[0] * 0.8 or abs(reached[0] - reached[1]) > 1e-4:
        raise Wrong(
            f"A small network goes from loss {losses[0]:.3f} to {reached[0]:.3f}, compiled to {reached[1]:.3f}."
        )
