"""`nn.utils.parametrize`, the ready-made parametrizations, and the older hooks for the same."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau.autograd.gradcheck import gradcheck, gradgradcheck
from tests.support.differential import differential, outcome, warned


def _parametrize(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.nn.utils.parametrize")


def _symmetric(T: Any) -> Any:
    class Symmetric(T.nn.Module):
        def forward(self, matrix):
            return matrix.triu() + matrix.triu(1).mT

        def right_inverse(self, matrix):
            return matrix.triu()

    return Symmetric()


def _by(T: Any, forward: Any, inverse: Any = None) -> Any:
    class By(T.nn.Module):
        def forward(self, *values):
            return forward(*values)

    result = By()
    if inverse is not None:
        result.right_inverse = inverse
    return result


def _trained(T: Any, layer: Any, steps: int = 3) -> list[Any]:
    """What a few steps of training make of a layer's state."""
    optimizer = T.optim.SGD(layer.parameters(), lr=0.1)
    inputs = T.randn(4, 3)
    for _ in range(steps):
        optimizer.zero_grad()
        layer(inputs).square().sum().backward()
        optimizer.step()
    layer.eval()
    return [layer.weight, layer(inputs), dict(layer.state_dict())]


@differential
def test_register_and_remove(T):
    P = _parametrize(T)
    layer = T.nn.Linear(3, 3)
    weight = layer.weight
    result = P.register_parametrization(layer, "weight", _symmetric(T))
    observed = [
        result is layer,
        repr(layer),
        type(layer).__name__,
        P.type_before_parametrizations(layer) is T.nn.Linear,
        [P.is_parametrized(layer, name) for name in (None, "weight", "bias")],
        layer.parametrizations.weight.original is weight,
        list(layer.state_dict()),
        [name for name, _ in layer.named_parameters()],
        layer.weight,
        isinstance(layer, T.nn.Linear),
    ]
    layer.weight = T.arange(9.0).view(3, 3)
    observed += [layer.weight, layer.parametrizations.weight.original, *_trained(T, layer)]
    P.register_parametrization(layer, "weight", _by(T, lambda matrix: matrix * 2))
    P.register_parametrization(layer, "bias", _by(T, lambda vector: vector + 1))
    observed += [
        repr(layer),
        layer.weight,
        layer.bias,
        outcome(lambda: setattr(layer, "weight", T.ones(3, 3)), "right_inverse"),
    ]
    twin = copy.deepcopy(layer)
    observed += [type(twin) is type(layer), twin.weight, twin.parametrizations.weight.original is weight]
    observed.append(outcome(lambda: pickle.dumps(layer), "only supported through state_dict()"))
    P.remove_parametrizations(layer, "weight")
    observed += [layer.weight, layer.weight is weight, type(layer).__name__, list(layer.state_dict())]
    P.remove_parametrizations(layer, "bias", leave_parametrized=False)
    observed += [layer.bias, type(layer).__name__, repr(layer), list(layer.state_dict())]
    return observed


@differential
def test_several_originals_and_buffers(T):
    P = _parametrize(T)
    layer = T.nn.Linear(3, 3)
    P.register_parametrization(layer, "weight", _by(T, lambda a, b: a + b, lambda value: (value / 4, value * 0.75)))
    observed = [dict(layer.state_dict()), layer.weight, layer.parametrizations.weight.ntensors]
    layer.weight = T.ones(3, 3)
    observed += [dict(layer.state_dict()), *_trained(T, layer)]
    observed.append(
        outcome(lambda: P.remove_parametrizations(layer, "weight", leave_parametrized=False), "sequence of tensors")
    )
    P.remove_parametrizations(layer, "weight")
    norm = T.nn.BatchNorm1d(2)
    P.register_parametrization(norm, "running_mean", _by(T, lambda mean: mean + 1))
    return [
        *observed,
        layer.weight,
        dict(norm.state_dict()),
        norm.running_mean,
        outcome(lambda: setattr(norm, "running_mean", T.nn.Parameter(T.ones(2)))),
    ]


@differential
def test_cached_and_transferred(T):
    P = _parametrize(T)
    layer, other = T.nn.Linear(3, 3), T.nn.Linear(3, 3)
    P.register_parametrization(layer, "weight", _symmetric(T))
    with P.cached():
        first = layer.weight
        with P.cached():
            same = [first is layer.weight]
        same.append(first is layer.weight)
    same.append(first is layer.weight)
    P.transfer_parametrizations_and_params(layer, other)
    plain = P.transfer_parametrizations_and_params(T.nn.Linear(3, 3), T.nn.Linear(3, 3))
    return (
        same,
        list(other.state_dict()),
        other.weight,
        other.parametrizations.weight.original is layer.parametrizations.weight.original,
        P.is_parametrized(plain),
    )


@differential
def test_parametrizations_that_do_not_fit(T):
    P = _parametrize(T)
    register = P.register_parametrization
    layer = register(T.nn.Linear(3, 3), "weight", _symmetric(T))
    cases = [
        (_by(T, lambda value: value.double()), "may not change the dtype"),
        (_by(T, lambda value: value[0]), "may not change the shape"),
        (_by(T, lambda value: 3), "must return a tensor"),
    ]
    first_only = [
        (_by(T, lambda value: value, lambda value: value.double()), "it may not change the dtype"),
        (_by(T, lambda value: value, lambda value: value.to("meta")), "it may not change the device"),
        (_by(T, lambda value: value, lambda value: 3), "must return a Tensor or a Sequence of tensors"),
        (_by(T, lambda a, b: a, lambda value: (value, 3)), "Got element 1 of the sequence with type int"),
    ]
    second_only = [
        (_by(T, lambda value: value, lambda value: value.double()), "must have the same dtype as module.weight"),
        (_by(T, lambda value: value, lambda value: value[0]), "must have the same shape as module.weight"),
        (_by(T, lambda value: value, lambda value: 3), "right_inverse must return a tensor"),
    ]
    return (
        [outcome(lambda p=p: register(T.nn.Linear(3, 3), "weight", p), words) for p, words in cases + first_only],
        [outcome(lambda p=p: register(layer, "weight", p), words) for p, words in cases + second_only],
        outcome(lambda: register(layer, "nothing", _symmetric(T)), "does not have a parameter, a buffer"),
        outcome(lambda: P.remove_parametrizations(layer, "bias"), "does not have a parametrization on bias"),
        outcome(lambda: P.ParametrizationList([], T.ones(1)), "requires one or more modules"),
        register(T.nn.Linear(3, 3), "weight", _by(T, lambda value: value.double()), unsafe=True).weight.dtype,
    )


@differential(tolerance=1e-5)
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("use_trivialization", [True, False])
@pytest.mark.parametrize("outputs", [2, 3, 5])
def test_orthogonal(T, kind, use_trivialization, outputs):
    layer = T.nn.Linear(3, outputs)
    T.nn.utils.parametrizations.orthogonal(layer, "weight", kind, use_trivialization=use_trivialization)
    observed = [repr(layer), layer.weight.detach(), *_trained(T, layer)[:2], list(layer.state_dict())]
    target = T.linalg.qr(T.randn(5, 5))[0][:outputs, :3]
    if kind == "householder" or use_trivialization:
        layer.weight = target
        observed.append(layer.weight.detach())
    else:
        observed.append(outcome(lambda: setattr(layer, "weight", target)))
    return observed


@differential
def test_orthogonal_misuse(T):
    orthogonal = T.nn.utils.parametrizations.orthogonal
    spectral_norm = T.nn.utils.parametrizations.spectral_norm
    layer = orthogonal(T.nn.Linear(3, 3))
    return (
        outcome(lambda: orthogonal(T.nn.Linear(3, 3), "bias"), "Expected a matrix or batch of matrices"),
        outcome(lambda: orthogonal(T.nn.Linear(3, 3), "nothing"), "has no parameter or buffer with name"),
        outcome(lambda: orthogonal(T.nn.Linear(3, 3), orthogonal_map="x"), "orthogonal_map has to be one of"),
        outcome(lambda: setattr(layer, "weight", T.ones(2, 3)), "Expected a matrix or batch of matrices of shape"),
        outcome(
            lambda: orthogonal(T.nn.Linear(3, 2, dtype=T.complex64), orthogonal_map="householder"), "complex tensors"
        ),
        outcome(lambda: spectral_norm(T.nn.Linear(3, 3), n_power_iterations=0), "to be positive"),
        outcome(lambda: spectral_norm(T.nn.Linear(3, 3), dim=2), "Dimension out of range"),
        outcome(lambda: spectral_norm(T.nn.Linear(3, 3), "nothing"), "has no parameter or buffer with name"),
    )


@differential(tolerance=1e-5)
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_normalised_layers(T, name):
    normalise = getattr(T.nn.utils.parametrizations, name)
    layer = normalise(T.nn.Linear(3, 4))
    observed = [repr(layer), dict(layer.state_dict()), *_trained(T, layer)]
    layer.weight = T.arange(12.0).view(4, 3)
    observed += [layer.weight, dict(layer.state_dict())]
    for other in (
        normalise(T.nn.Conv2d(2, 3, 2), dim=1),
        normalise(T.nn.Conv1d(2, 3, 2), dim=2),
        normalise(T.nn.ConvTranspose2d(2, 3, 2)),
        normalise(T.nn.Linear(3, 3), "bias"),
        normalise(T.nn.Linear(3, 3).double(), dim=-1),
    ):
        observed += [dict(other.state_dict()), other.weight, other.bias]
    return observed


@differential(tolerance=1e-5)
def test_weight_norm_without_dim_and_older_state(T):
    layer = T.nn.utils.parametrizations.weight_norm(T.nn.Linear(3, 4), dim=None)
    older = {"weight_g": T.tensor(2.0), "weight_v": T.ones(4, 3), "bias": T.zeros(4)}
    keys = layer.load_state_dict(older)
    return repr(keys), dict(layer.state_dict()), layer.weight


@differential(tolerance=1e-5)
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_older_hooks(T, name):
    normalise, undo = getattr(T.nn.utils, name), getattr(T.nn.utils, f"remove_{name}")
    layer = normalise(T.nn.Linear(3, 4))
    observed = [
        repr(layer),
        dict(layer.state_dict()),
        layer.state_dict()._metadata[""],
        layer.weight,
        *_trained(T, layer),
        outcome(lambda: normalise(layer), f"Cannot register two {name} hooks"),
        outcome(lambda: normalise(T.nn.LazyLinear(3)), "can't have uninitialized parameters"),
    ]
    fresh = normalise(T.nn.Linear(3, 4))
    observed += [repr(fresh.load_state_dict(layer.state_dict())), fresh.eval()(T.ones(2, 3))]
    undo(layer)
    return [
        *observed,
        layer.weight,
        list(layer.state_dict()),
        len(layer._forward_pre_hooks) + len(layer._state_dict_hooks),
        outcome(lambda: undo(layer), f"{name} of 'weight' not found"),
    ]


@differential
def test_older_hooks_warn_or_not(T):
    return [
        warned(lambda each=each: each(T.nn.Linear(2, 2)) and None)
        for each in (T.nn.utils.weight_norm, T.nn.utils.spectral_norm)
    ]


@differential(tolerance=1e-4)
def test_spectral_norm_of_the_first_version(T):
    layer = T.nn.utils.spectral_norm(T.nn.Linear(3, 4))
    layer(T.ones(1, 3))
    state = dict(layer.state_dict())
    del state["weight_v"]
    state["weight"] = layer.weight.detach()
    fresh = T.nn.utils.spectral_norm(T.nn.Linear(3, 4))
    found = outcome(lambda: fresh.load_state_dict({"bias": T.zeros(4)}), "weight_orig")
    fresh.load_state_dict(state)
    return found, fresh.eval()(T.ones(1, 3))


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm", "orthogonal"])
def test_states_are_pytorchs(name):
    """State dicts go both ways between the libraries, and the same weight results."""
    ours = getattr(flambeau.nn.utils.parametrizations, name)(flambeau.nn.Linear(3, 3))
    theirs = getattr(pytorch.nn.utils.parametrizations, name)(pytorch.nn.Linear(3, 3))
    ours.load_state_dict({key: flambeau.tensor(value.tolist()) for key, value in theirs.state_dict().items()})
    assert pytorch.allclose(theirs.eval().weight, pytorch.tensor(ours.eval().weight.tolist()), atol=1e-6)
    theirs.load_state_dict({key: pytorch.tensor(value.tolist()) for key, value in ours.state_dict().items()})


@differential
@pytest.mark.parametrize("dim", [-1, 0, 1, 2])
def test_weight_norm_function(T, dim):
    v = T.randn(2, 3, 4, requires_grad=True)
    g = T.norm_except_dim(v.detach(), 2, dim).requires_grad_()
    result = T._weight_norm(v, g * 2, dim)
    (result * T.randn(2, 3, 4)).sum().backward()
    return T.norm_except_dim(v.detach(), 1, dim), result, v.grad, g.grad, T._weight_norm(v.half(), g.half(), dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_weight_norm_derivatives(dim):
    v = flambeau.randn(2, 3, 2, dtype=flambeau.float64, requires_grad=True)
    g = flambeau.norm_except_dim(v.detach(), 2, dim).requires_grad_()
    assert gradcheck(lambda v, g: flambeau._weight_norm(v, g, dim), (v, g))
    assert gradgradcheck(lambda v, g: flambeau._weight_norm(v, g, dim), (v, g))
