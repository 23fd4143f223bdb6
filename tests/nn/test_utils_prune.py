"""`nn.utils.prune`: masks, hooks and misuse."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _prune(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.nn.utils.prune")


@differential
@pytest.mark.parametrize("amount", [0, 3, 0.4, 1.0, 12])
def test_unstructured(T, amount):
    P = _prune(T)
    observed = []
    for method in (P.random_unstructured, P.l1_unstructured):
        layer = T.nn.Linear(4, 3)
        observed += [method(layer, "weight", amount) is layer, dict(layer.state_dict()), layer.weight]
    return observed


@differential
@pytest.mark.parametrize("amount", [0, 2, 0.6, 1.0])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_structured(T, amount, dim):
    P = _prune(T)
    layer = T.nn.Conv1d(3, 4, 3)
    P.random_structured(layer, "weight", amount, dim)
    observed = [layer.weight_mask]
    for n in (1, 2, float("inf"), -float("inf")):
        layer = T.nn.Conv1d(3, 4, 3)
        P.ln_structured(layer, "weight", amount, n, dim)
        observed.append(layer.weight_mask)
    return observed


@differential
def test_one_after_the_other(T):
    P = _prune(T)
    layer = T.nn.Linear(4, 5)
    observed = [P.is_pruned(layer)]
    for step in (
        lambda: P.random_unstructured(layer, "weight", 3),
        lambda: P.l1_unstructured(layer, "weight", 0.5),
        lambda: P.ln_structured(layer, "weight", 1, 2, 0),
        lambda: P.random_structured(layer, "weight", 1, 1),
        lambda: P.custom_from_mask(layer, "weight", T.eye(5, 4)),
        lambda: P.identity(layer, "bias"),
    ):
        step()
        observed += [dict(layer.state_dict()), layer.weight, len(layer._forward_pre_hooks)]
    hook = next(iter(layer._forward_pre_hooks.values()))
    observed += [[type(each).__name__ for each in hook], len(hook), type(hook[1]).__name__]
    optimizer = T.optim.SGD(layer.parameters(), lr=0.1)
    layer(T.ones(2, 4)).square().sum().backward()
    optimizer.step()
    observed += [layer.weight_orig.grad, layer(T.ones(2, 4)), layer.weight, P.is_pruned(T.nn.Sequential(layer))]
    P.remove(layer, "weight")
    return [*observed, dict(layer.state_dict()), layer.weight, P.is_pruned(layer), repr(layer)]


@differential
def test_importance_scores(T):
    P = _prune(T)
    layer = T.nn.Linear(4, 3)
    P.l1_unstructured(layer, "weight", 3, importance_scores=T.arange(12.0).view(3, 4))
    first = layer.weight_mask
    P.ln_structured(layer, "weight", 1, 2, 0, importance_scores=T.arange(12.0, 0, -1).view(3, 4))
    method = P.L1Unstructured(2)
    return (
        first,
        layer.weight_mask,
        method.prune(T.arange(4.0)),
        method.prune(T.arange(4.0), default_mask=T.tensor([1.0, 0.0, 1.0, 1.0])),
        method.prune(T.arange(4.0), importance_scores=-T.arange(4.0)),
        outcome(lambda: method.prune(T.arange(4.0), importance_scores=T.ones(2)), "same shape as tensor t"),
        outcome(lambda: P.l1_unstructured(T.nn.Linear(2, 2), "weight", 1, T.ones(3)), "same shape as parameter weight"),
    )


@differential
def test_global(T):
    P = _prune(T)
    one, two = T.nn.Linear(4, 3), T.nn.Linear(3, 2)
    parameters = [(one, "weight"), (two, "bias"), (two, "weight")]
    observed = []
    for method, options in ((P.L1Unstructured, {"amount": 0.3}), (P.RandomUnstructured, {"amount": 4})):
        P.global_unstructured(parameters, method, **options)
        observed += [one.weight_mask, two.bias_mask, two.weight_mask]
    P.global_unstructured(parameters, P.L1Unstructured, {(two, "bias"): T.full((2,), -9.0)}, amount=3)
    return (
        observed,
        [one.weight_mask, two.bias_mask, two.weight_mask],
        outcome(lambda: P.global_unstructured(3, P.L1Unstructured, amount=1), "is not an Iterable"),
        outcome(lambda: P.global_unstructured(parameters, P.L1Unstructured, 3, amount=1), "must be of type dict"),
        outcome(lambda: P.global_unstructured(parameters, P.RandomStructured, amount=1), 'Only "unstructured"'),
    )


@differential
def test_own_method(T):
    P = _prune(T)

    class Every(P.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def __init__(self, step):
            self.step = step

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[:: self.step] = 0
            return mask

    class Odd(Every):
        PRUNING_TYPE = "odd"

    layer = T.nn.Linear(4, 3)
    hook = Every.apply(layer, "weight", 3)
    observed = [layer.weight_mask, hook.step, outcome(lambda: P.BasePruningMethod())]
    P.l1_unstructured(layer, "weight", 1)
    return (
        observed,
        layer.weight_mask,
        outcome(lambda: Odd.apply(layer, "weight", 2), "Unrecognized PRUNING_TYPE"),
        outcome(lambda: P.PruningContainer(hook).add_pruning_method(3), "is not a BasePruningMethod subclass"),
        outcome(
            lambda: P.PruningContainer(hook).add_pruning_method(_named(P, "bias")), "acting on the parameter named"
        ),
    )


def _named(P: Any, name: str) -> Any:
    method = P.Identity()
    method._tensor_name = name
    return method


@differential
@pytest.mark.parametrize("amount", [-1, 1.5, 100, "a", None])
def test_wrong_amounts(T, amount):
    P = _prune(T)
    layer = T.nn.Linear(4, 3)
    return (
        outcome(lambda: P.random_unstructured(layer, "weight", amount), "amount"),
        outcome(lambda: P.ln_structured(layer, "weight", amount, 2, 0), "amount"),
        list(layer.state_dict()),
        P.is_pruned(layer),
    )


@differential
def test_misuse(T):
    P = _prune(T)
    layer = T.nn.Linear(4, 3)
    return (
        outcome(lambda: P.random_structured(layer, "bias", 1, 0), "can only be applied to multidimensional tensors"),
        outcome(lambda: P.random_structured(layer, "weight", 1, 5), "Invalid index 5 for tensor of size"),
        outcome(lambda: P.random_unstructured(layer, "nothing", 1), "has no attribute 'nothing'"),
        outcome(lambda: P.custom_from_mask(layer, "weight", T.ones(2)), "default_mask shape"),
        outcome(lambda: P.remove(layer, "weight"), "has to be pruned before pruning can be removed"),
        dict(layer.state_dict()),
    )
