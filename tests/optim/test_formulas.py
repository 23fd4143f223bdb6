"""The formulas in docstrings of optimizers and schedulers, run as they stand, give what the classes compute."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import pytest

import flambeau as torch
from flambeau.optim import lr_scheduler

OPTIMIZERS: dict[Any, dict[str, Any]] = {
    torch.optim.SGD: {"lr": 0.1, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.2},
    torch.optim.Adam: {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2},
    torch.optim.AdamW: {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2},
    torch.optim.Adamax: {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2},
    torch.optim.RMSprop: {"lr": 0.1, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.2},
    torch.optim.Adagrad: {"lr": 0.1, "lr_decay": 0.3, "eps": 1e-3, "weight_decay": 0.2},
    torch.optim.Adadelta: {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.2},
}
FUNCTIONS = {name: getattr(torch, name) for name in ("sqrt", "abs", "maximum")}
STATE = ("velocity", "average", "square", "largest", "total", "moved")
SCHEDULERS: dict[Any, dict[str, Any]] = {
    lr_scheduler.StepLR: {"step_size": 3, "gamma": 0.5},
    lr_scheduler.ExponentialLR: {"gamma": 0.5},
    lr_scheduler.ConstantLR: {"factor": 0.25, "total_iters": 3},
    lr_scheduler.LinearLR: {"start_factor": 0.25, "end_factor": 0.75, "total_iters": 4},
    lr_scheduler.PolynomialLR: {"total_iters": 4, "power": 2.0},
    lr_scheduler.CosineAnnealingLR: {"T_max": 5, "eta_min": 0.1},
    lr_scheduler.LambdaLR: {"lr_lambda": lambda epoch: 0.9**epoch},
    lr_scheduler.MultiStepLR: {"milestones": [2, 4], "gamma": 0.5},
}


def statements(cls: Any) -> list[str]:
    """The assignments that the docstring of a class shows, in their order."""
    text = (inspect.getdoc(cls) or "").partition("Args:")[0]
    return re.findall(r"`([a-z]\w* = [^`]+)`", text)


@pytest.mark.parametrize("cls", OPTIMIZERS, ids=lambda cls: cls.__name__)
def test_a_step_of_an_optimizer(cls: Any) -> None:
    options = OPTIMIZERS[cls]
    param = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    names: dict[str, Any] = {**FUNCTIONS, **options, "param": param.detach().clone()}
    names.update(
        dict.fromkeys(STATE, torch.zeros(3, dtype=torch.float64)),
        beta1=options.get("betas", (0,))[0],
        beta2=options.get("betas", (0,))[-1],
    )
    shown = statements(cls)
    assert len(shown) >= 3
    optimizer = cls([param], **options)
    for step in range(1, 6):
        optimizer.zero_grad()
        (param**2 * torch.tensor([1.0, 0.5, 2.0])).sum().backward()
        names["grad"], names["t"] = param.grad.clone(), step
        optimizer.step()
        for statement in shown:
            exec(statement, names)
        torch.testing.assert_close(names["param"], param.detach(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("cls", SCHEDULERS, ids=lambda cls: cls.__name__)
def test_rates_of_a_scheduler(cls: Any) -> None:
    (shown,) = statements(cls)
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=2.0)
    scheduler = cls(optimizer, **SCHEDULERS[cls])
    for epoch in range(8):
        names = {**vars(math), **SCHEDULERS[cls], "initial_lr": 2.0, "epoch": epoch}
        exec(shown, names)
        assert scheduler.get_last_lr() == pytest.approx([names["lr"]], rel=1e-12)
        optimizer.step()
        scheduler.step()
