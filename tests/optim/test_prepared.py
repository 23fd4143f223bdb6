"""Prepared steps, as compiled functions run them: the same numbers as the optimizer's own, whatever happens between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.optim._prepared import PreparedStep, prepared_step

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "adam": ("Adam", {}),
    "adam with decay": ("Adam", {"weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    "adamw": ("AdamW", {"lr": 0.01}),
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd with momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "rmsprop": ("RMSprop", {"momentum": 0.5, "centered": True}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1}),
    "radam": ("RAdam", {}),
    "adamax": ("Adamax", {}),
    "adadelta": ("Adadelta", {}),
}


class Training:
    """An optimizer of two parameters, stepped as it stands or prepared."""

    def __init__(self, name: str, options: dict[str, Any], dtype: Any = torch.float32) -> None:
        torch.manual_seed(0)
        self.params = [torch.randn(3, 2, dtype=dtype).requires_grad_(), torch.randn(5, dtype=dtype).requires_grad_()]
        self.optimizer: Any = getattr(torch.optim, name)(self.params, **options)
        self.step: Callable[[], Any] = self.optimizer.step

    def train(self, steps: int) -> None:
        for number in range(steps):
            for each in self.params:
                each.grad = torch.sin(each.detach() * (number + 1))
            self.step()

    def prepare(self) -> PreparedStep:
        made = prepared_step(type(self.optimizer).step, self.optimizer)
        assert made is not None
        self.step = made
        return made

    def found(self) -> Any:
        states = [[each.tolist() for each in state.values()] for state in self.optimizer.state.values()]
        return [each.tolist() for each in self.params], [each._version for each in self.params], states


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_prepared_steps_are_the_steps(name: str, dtype: Any) -> None:
    plain, other = (Training(*OPTIMIZERS[name], dtype) for _ in range(2))
    for training in (plain, other):
        training.train(7)  # of RAdam's first steps the rule is another one
        if training is other:
            training.prepare()
        training.train(2)
        training.optimizer.param_groups[0]["lr"] *= 0.5
        training.train(2)
    assert other.found() == plain.found()


def own_steps(training: Training, change: Callable[[Training], None]) -> int:
    """How often the optimizer's own step ran after a change."""
    training.train(2)
    made = training.prepare()
    training.train(1)
    ran: list[int] = []
    own = made._step

    def noted(optimizer: Any) -> Any:
        ran.append(1)
        return own(optimizer)

    made._step = noted
    change(training)
    training.train(2)
    return len(ran)


def _load(training: Training) -> None:
    training.optimizer.load_state_dict(training.optimizer.state_dict())


def _replace_data(training: Training) -> None:
    training.params[0].data = training.params[0].detach() * 2


def _hook(training: Training) -> None:
    training.optimizer.register_step_post_hook(lambda *_: None)


def _option(training: Training) -> None:
    training.optimizer.param_groups[0]["weight_decay"] = 0.25


def _add_group(training: Training) -> None:
    training.optimizer.add_param_group({"params": [torch.ones(2, requires_grad=True)], "lr": 0.5})


def _replace_state(training: Training) -> None:
    state = training.optimizer.state[training.params[0]]
    state["exp_avg"] = state["exp_avg"] + 1


def _share_memory(training: Training) -> None:
    def train(steps: int) -> None:
        for _ in range(steps):
            training.params[0].grad = training.params[0].detach()
            training.params[1].grad = torch.ones(5)
            training.step()

    vars(training)["train"] = train


@pytest.mark.parametrize(
    "change",
    [_load, _replace_data, _hook, _option, _add_group, _replace_state, _share_memory],
    ids=lambda each: each.__name__,
)
def test_what_is_no_longer_as_it_was_is_not_used(change: Callable[[Training], None]) -> None:
    assert own_steps(Training("Adam", {}), change) == 2
    plain, other = Training("Adam", {}), Training("Adam", {})
    for training in (plain, other):
        training.train(2)
        if training is other:
            training.prepare()
        change(training)
        training.train(2)
    assert other.found() == plain.found()


def test_nothing_else_is_a_change() -> None:
    assert own_steps(Training("Adam", {}), lambda training: None) == 0


def test_a_missing_gradient_is_heeded() -> None:
    def forget(training: Training) -> None:
        def train(steps: int) -> None:
            for _ in range(steps):
                training.params[0].grad = None
                training.step()

        vars(training)["train"] = train

    assert own_steps(Training("SGD", {"lr": 0.1}), forget) == 2


@pytest.mark.parametrize(
    ("name", "options"),
    [("NAdam", {}), ("Adam", {"lr": torch.tensor(0.1)}), ("ASGD", {})],
)
def test_other_steps_are_not_prepared(name: str, options: dict[str, Any]) -> None:
    training = Training(name, options)
    training.train(2)
    before = training.found()
    assert prepared_step(type(training.optimizer).step, training.optimizer) is None
    assert training.found() == before
