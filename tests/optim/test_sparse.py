"""Optimizers with sparse gradients, as `Embedding(sparse=True)` makes them, beside PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau

from .both import arrays_of, assert_same

STEPS = 50


def _train(framework: Any, name: str, options: dict[str, Any], dtype: str = "float64", steps: int = STEPS) -> Any:
    """Fifty steps on two tables of rows, of which each step uses a few, some of them twice."""
    generator = np.random.default_rng(0)
    element = getattr(framework, dtype)
    tables = [framework.tensor(generator.normal(size=shape), dtype=element) for shape in ((9, 3), (4, 2))]
    embedding = framework.nn.Embedding(9, 3, sparse=True, padding_idx=1, _weight=tables[0])
    bag = framework.nn.EmbeddingBag(4, 2, sparse=True, mode="mean", _weight=tables[1])
    params = [embedding.weight, bag.weight]
    optimizer = getattr(framework.optim, name)(params, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(steps):
            optimizer.zero_grad(set_to_none=step % 7 != 3)
            chosen = framework.tensor(generator.integers(0, 9, (2, 3)))
            in_bags = framework.tensor(generator.integers(0, 4, (2, 2)))
            loss = (embedding(chosen) ** 2).sum() + (bag(in_bags) * 3).sin().sum()
            loss.backward()
            assert all(each.grad.is_sparse for each in params)
            optimizer.step()
        return arrays_of([params, optimizer.state_dict()["state"]])


CASES: list[tuple[str, dict[str, Any]]] = [
    ("SparseAdam", {"lr": 0.05}),
    ("SparseAdam", {"lr": 0.05, "betas": (0.5, 0.9), "eps": 1e-3}),
    ("SparseAdam", {"lr": 0.05, "maximize": True}),
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "maximize": True}),
    ("SGD", {"lr": 0.05, "foreach": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "eps": 1e-3, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"lr": 0.1, "maximize": True, "foreach": True}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_fifty_steps(name: str, options: dict[str, Any]) -> None:
    assert_same(_train(pytorch, name, options), _train(flambeau, name, options), 1e-9)


@pytest.mark.parametrize("name", ["SparseAdam", "SGD", "Adagrad"])
def test_fifty_steps_in_single_precision(name: str) -> None:
    expected, actual = (_train(each, name, {"lr": 0.02}, "float32") for each in (pytorch, flambeau))
    assert_same(expected, actual, 2e-5)


def test_lbfgs_makes_them_dense() -> None:
    def observe(framework: Any) -> Any:
        weight = framework.arange(6.0, dtype=framework.float64).reshape(3, 2).requires_grad_()
        optimizer = framework.optim.LBFGS([weight], lr=0.1, max_iter=5)

        def closure() -> Any:
            optimizer.zero_grad()
            rows = framework.nn.functional.embedding(framework.tensor([0, 2, 0]), weight, sparse=True)
            loss = (rows**2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return arrays_of([weight])

    assert_same(observe(pytorch), observe(flambeau), 1e-9)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("Adam", "RMSprop", "AdamW", "Rprop", "ASGD", "Adadelta", "Adamax", "NAdam", "RAdam")),
    ("Adafactor", {}),
    ("Muon", {}),
    ("Adagrad", {"weight_decay": 0.1}),
    ("Adagrad", {"fused": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "fused": True}),
]


@pytest.mark.parametrize(("name", "options"), REFUSED, ids=str)
def test_refused(name: str, options: dict[str, Any]) -> None:
    def observe(framework: Any) -> Exception:
        with pytest.raises(RuntimeError) as caught:
            _train(framework, name, options, steps=1)
        return caught.value

    expected, actual = observe(pytorch), observe(flambeau)
    assert type(expected) is type(actual)
    for phrase in ("does not support sparse", "not compatible with sparse gradients", "add(sparse, dense)"):
        assert (phrase in str(expected)) == (phrase in str(actual))


def test_a_dense_gradient_is_none_for_sparse_adam() -> None:
    weight = flambeau.ones(2, 2, requires_grad=True)
    weight.grad = flambeau.ones(2, 2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        flambeau.optim.SparseAdam([weight]).step()


def test_rows_that_no_gradient_names_stay() -> None:
    for name in ("SparseAdam", "SGD", "Adagrad"):
        weight = flambeau.ones(1000, 4, requires_grad=True)
        optimizer = getattr(flambeau.optim, name)([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            flambeau.nn.functional.embedding(flambeau.tensor([5, 7]), weight, sparse=True).sum().backward()
            optimizer.step()
        assert (weight != 1).any(1).nonzero().flatten().tolist() == [5, 7]


def test_a_state_goes_on_where_it_was_saved() -> None:
    def observe(restart: bool) -> Any:
        weight = flambeau.arange(8.0).reshape(4, 2).requires_grad_()
        optimizer = flambeau.optim.SGD([weight], lr=0.1, momentum=0.9)
        for step in range(4):
            if restart and step == 2:
                state = optimizer.state_dict()
                optimizer = flambeau.optim.SGD([weight], lr=0.1, momentum=0.9)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            flambeau.nn.functional.embedding(flambeau.tensor([step % 3, 1]), weight, sparse=True).pow(
                2
            ).sum().backward()
            optimizer.step()
        return arrays_of([weight])

    assert_same(observe(False), observe(True), 0.0)


def test_gradient_scaling() -> None:
    def observe(framework: Any) -> Any:
        weight = framework.arange(8.0).reshape(4, 2).requires_grad_()
        optimizer = framework.optim.SGD([weight], lr=0.1)
        scaler = framework.amp.GradScaler("cpu", init_scale=8.0)
        loss = framework.nn.functional.embedding(framework.tensor([2, 2, 1]), weight, sparse=True).pow(2).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        gradient = weight.grad.to_dense()
        scaler.step(optimizer)
        scaler.update()
        return arrays_of([weight, gradient])

    assert_same(observe(pytorch), observe(flambeau), 1e-6)
