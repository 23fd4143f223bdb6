"""Every optimizer makes PyTorch's steps, with the options of PyTorch's database of optimizers and further ones."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch as pytorch

import flambeau

from .both import MATRICES, NAMES, ROUNDING, SHAPES, arrays_of, assert_same, converted, database, parameters, run

STEPS = 50
DENSE = [name for name in NAMES if name not in ("LBFGS", "SparseAdam")]
FURTHER: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"momentum": 0.9, "nesterov": True, "maximize": True}, {"fused": True, "momentum": 0.5}, {"foreach": True}],
    "Adam": [
        {"amsgrad": True, "maximize": True, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"fused": True, "amsgrad": True},
        {"foreach": True, "betas": (0.5, 0.9), "eps": 1e-3},
        {"lr": pytorch.tensor(0.01, dtype=pytorch.float64)},
        {"betas": (pytorch.tensor(0.8).double(), pytorch.tensor(0.9).double())},
    ],
    "AdamW": [{"fused": True, "weight_decay": 0.3}, {"lr": pytorch.tensor(0.01).double()}],
    "Adagrad": [{"fused": True, "lr_decay": 0.1}, {"foreach": True}],
    "ASGD": [{"t0": 10, "lr": 0.1, "alpha": 0.6}],
    "RMSprop": [{"momentum": 0.9}, {"alpha": 0.5, "eps": 0.1, "foreach": True}],
    "RAdam": [{"betas": (0.5, 0.7), "lr": pytorch.tensor(0.01).double()}],
    "NAdam": [{"betas": (0.5, 0.7), "lr": pytorch.tensor(0.01).double()}],
    "Adafactor": [{"eps": (1e-3, 1e-2)}],
    "Muon": [{"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}],
    "Rprop": [{"lr": 0.3, "step_sizes": (0.1, 0.5)}],
}


def _options(name: str) -> list[dict[str, Any]]:
    listed = database(name).optim_inputs_func(device="cpu", dtype=pytorch.float64)
    return [each.kwargs for each in listed] + FURTHER.get(name, [])


def _observe(framework: Any, name: str, options: dict[str, Any], dtype: str, steps: int = STEPS) -> Any:
    params = parameters(framework, dtype, MATRICES if name == "Muon" else SHAPES)
    options = converted(options, framework)
    optimizer = getattr(framework.optim, name)(params, **options)
    run(framework, optimizer, params, steps)
    return arrays_of({"params": params, **optimizer.state_dict()}), repr(optimizer)


def _compare(name: str, options: dict[str, Any], dtype: str, rounding: float, steps: int = STEPS) -> None:
    expected, text = _observe(pytorch, name, options, dtype, steps)
    actual, own_text = _observe(flambeau, name, options, dtype, steps)
    assert_same(expected, actual, rounding, f"{name}({options})")
    assert text == own_text


@pytest.mark.parametrize("name", DENSE)
def test_fifty_steps(name: str) -> None:
    for number, options in enumerate(_options(name)):
        in_single = any(isinstance(each, pytorch.Tensor) and each.dtype is pytorch.float32 for each in options.values())
        # A learning rate of single precision rounds as such. Muon computes in bfloat16, for which PyTorch takes long.
        rounding = 0.02 if name == "Muon" else 1e-7 if in_single else ROUNDING["float64"]
        _compare(name, options, "float64", rounding, 5 if name == "Muon" and number else STEPS)


@pytest.mark.parametrize("name", DENSE)
def test_fifty_steps_in_single_precision(name: str) -> None:
    for options in _options(name)[2::5]:
        _compare(name, options, "float32", 0.02 if name == "Muon" else ROUNDING["float32"])


@pytest.mark.parametrize("name", [each for each in DENSE if each not in ("Adafactor", "Muon")])
def test_complex_parameters(name: str) -> None:
    for options in _options(name)[::2]:
        if not options.get("fused"):
            _compare(name, options, "complex128", 1e-7 if "lr" in options else ROUNDING["complex128"], steps=4)


@pytest.mark.parametrize("name", DENSE)
def test_bfloat16_parameters(name: str) -> None:
    _compare(name, {}, "bfloat16", ROUNDING["bfloat16"], steps=3)


def test_parameters_of_many_sizes_and_dtypes_in_one_group() -> None:
    shapes = [(2100,), (3,), (20, 50), (7, 8), (), (0, 3), (2000,)]

    def observe(framework: Any) -> Any:
        params = parameters(framework, "float64", shapes + [(1500,)] * 60) + parameters(framework, "float32", shapes)
        params.append(params[0].detach().t().clone().requires_grad_(True))
        params[3] = params[3].detach().t().requires_grad_(True)  # not contiguous
        optimizer = framework.optim.Adam(params, lr=0.1)
        run(framework, optimizer, params, 3)
        return arrays_of(params)

    assert_same(observe(pytorch), observe(flambeau), 1e-5)


def test_the_same_parameter_twice_is_updated_twice() -> None:
    def observe(framework: Any) -> Any:
        (param,) = parameters(framework, "float64", [(3,)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = framework.optim.Adam([param, param], lr=0.1)
        run(framework, optimizer, [param], 2)
        return arrays_of([param, optimizer.state[param]])

    assert_same(observe(pytorch), observe(flambeau), 1e-12)


def test_views_of_a_parameter_see_its_update_and_versions_count() -> None:
    params = parameters(flambeau, "float64", [(3, 4), (2,)])
    row = params[0].detach()[0]
    versions = [each._version for each in params]
    run(flambeau, flambeau.optim.SGD(params, lr=1.0), params, 1)
    assert row.tolist() == params[0][0].tolist()
    assert [each._version for each in params] == [each + 1 for each in versions]


def test_a_change_by_a_step_is_noticed_in_backward() -> None:
    params = parameters(flambeau, "float64", [(3,), (3,)])
    product = (params[0] * params[1]).sum()
    run(flambeau, flambeau.optim.SGD(params, lr=1.0), params, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


@pytest.mark.parametrize("name", NAMES)
def test_errors_of_the_database(name: str) -> None:
    for entry in database(name).optim_error_inputs_func(device="cpu", dtype=pytorch.float64):
        given = entry.optimizer_error_input
        params = [flambeau.zeros(2, 2, requires_grad=True)] if given.params is None else _leaves(given.params)
        options = converted(given.kwargs, flambeau)
        make = getattr(flambeau.optim, name)
        if entry.error_type is UserWarning:
            with pytest.warns(UserWarning, match=entry.error_regex):
                make(params, **options)
        elif entry.error_on.name == "CONSTRUCTION_ERROR":
            with pytest.raises(entry.error_type, match=entry.error_regex):
                make(params, **options)
        else:
            optimizer = make(params, **options)
            for param in params:
                param.grad = flambeau.ones_like(param)
            with pytest.raises(entry.error_type, match=entry.error_regex):
                optimizer.step()


def _leaves(params: Any, known: dict[int, Any] | None = None) -> Any:
    """PyTorch's leaves as Flambeau's; the same one twice stays the same."""
    known = {} if known is None else known
    if isinstance(params, pytorch.Tensor):
        if id(params) not in known:
            known[id(params)] = converted(params, flambeau).requires_grad_(True)
        return known[id(params)]
    if isinstance(params, dict):
        return {key: _leaves(each, known) for key, each in params.items()}
    if isinstance(params, (list, tuple)):
        return type(params)(_leaves(each, known) for each in params)
    return params


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": -1.0}),
    ("SGD", {"nesterov": True}),
    ("SGD", {"fused": True, "foreach": True}),
    ("SGD", {"fused": True, "differentiable": True}),
    ("Adam", {"fused": True, "foreach": True}),
    ("Adam", {"capturable": True}),
    ("Adam", {"foreach": True, "differentiable": True}),
    ("Adam", {"eps": -1.0}),
    ("AdamW", {"betas": (0.9, 2.0)}),
    ("Adagrad", {"initial_accumulator_value": -1}),
    ("Adagrad", {"fused": True, "differentiable": True}),
    ("RMSprop", {"alpha": -1}),
    ("RMSprop", {"capturable": True}),
    ("Rprop", {"capturable": True}),
    ("ASGD", {"lr": -0.1, "capturable": True}),
    ("Adafactor", {"eps": (None, -1.0)}),
    ("Muon", {"momentum": -1}),
    ("Muon", {"ns_steps": 100}),
    ("SparseAdam", {"eps": 0.0}),
    ("SparseAdam", {}),
    ("LBFGS", {"lr": -1}),
]


@pytest.mark.parametrize(("name", "options"), REFUSED, ids=str)
def test_refused_combinations(name: str, options: dict[str, Any]) -> None:
    def observe(framework: Any) -> Exception:
        param = framework.zeros(2, 2, requires_grad=True)
        with pytest.raises((ValueError, RuntimeError, AssertionError)) as caught:  # noqa: PT012
            optimizer = getattr(framework.optim, name)([param], **options)
            param.grad = framework.ones(2, 2)
            optimizer.step()
        return caught.value  # type: ignore[no-any-return]

    expected, actual = observe(pytorch), observe(flambeau)
    assert type(expected) is type(actual)
    beginning = re.split(r"[:.\[]", str(expected))[0]
    assert beginning in str(actual)


def test_fused_is_for_floating_point() -> None:
    params = parameters(flambeau, "complex128", [(2,)])
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point"):
        run(flambeau, flambeau.optim.SGD(params, fused=True), params, 1)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad"])
def test_fused_optimizers_unscale(name: str) -> None:
    def observe(framework: Any) -> Any:
        (param,) = parameters(framework, "float32", [(3,)])
        optimizer = getattr(framework.optim, name)([param], lr=0.1, fused=True)
        results = []
        for found in (0.0, 1.0):
            param.grad = framework.tensor([8.0, 16.0, -4.0])
            optimizer.grad_scale = framework.tensor(4.0)
            optimizer.found_inf = framework.tensor(found)
            optimizer.step()
            results.append(arrays_of([param, optimizer.state_dict()["state"]]))
        return results

    assert_same(observe(pytorch), observe(flambeau), 1e-6)


@pytest.mark.parametrize("name", [each for each in DENSE if each not in ("Adafactor", "Muon")])
def test_differentiable(name: str) -> None:
    """The gradient of the updated parameter by the gradient that was used."""

    def observe(framework: Any) -> Any:
        values = parameters(framework, "float64", [(3,), (3,)])
        optimizer = getattr(framework.optim, name)([values[0].clone()], differentiable=True, lr=0.1)
        (param,) = optimizer.param_groups[0]["params"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            param.grad = values[1] * values[1]
            optimizer.step()
        return arrays_of(list(framework.autograd.grad(param.pow(2).sum(), values)))

    assert_same(observe(pytorch), observe(flambeau), 1e-5)  # PyTorch computes with a step of single precision here


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_differentiable_options(name: str) -> None:
    def observe(framework: Any) -> Any:
        value, grad = parameters(framework, "float64", [(3,), (3,)])
        options = [framework.tensor(each, dtype=framework.float64, requires_grad=True) for each in (0.1, 0.01)]
        arguments: dict[str, Any] = {"lr": options[0], "weight_decay": options[1]}
        if name != "SGD":
            options += [framework.tensor(each, dtype=framework.float64, requires_grad=True) for each in (0.8, 0.9)]
            arguments["betas"] = (options[2], options[3])
        optimizer = getattr(framework.optim, name)([value.clone()], differentiable=True, **arguments)
        (param,) = optimizer.param_groups[0]["params"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            param.grad = grad * grad
            optimizer.step()
        return arrays_of(list(framework.autograd.grad(param.pow(2).sum(), [value, grad, *options])))

    assert_same(observe(pytorch), observe(flambeau), 1e-10)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RMSprop"])
def test_derivatives_through_two_differentiable_steps(name: str) -> None:
    def stepped(param: Any, grad: Any) -> Any:
        moved = param.clone()
        optimizer = getattr(flambeau.optim, name)([moved], lr=0.1, differentiable=True)
        for number in (1, 2):
            moved.grad = grad * number
            optimizer.step()
        return moved

    param = flambeau.tensor([1.0, 2.0], dtype=flambeau.float64, requires_grad=True)
    grad = flambeau.tensor([0.3, -0.2], dtype=flambeau.float64, requires_grad=True)
    assert flambeau.autograd.gradcheck(stepped, (param, grad))
