"""Modules that keep less for backward: their names, state dicts and gradients beside PyTorch's."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _tools(torch: Any) -> tuple[Any, Any]:
    root = f"{torch.__name__}.distributed"
    wrappers = importlib.import_module(f"{root}.algorithms._checkpoint.checkpoint_wrapper")
    return wrappers, importlib.import_module(f"{root}.fsdp.wrap")


def _model(torch: Any) -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.ModuleList([nn.Linear(4, 2)])[0]
    )


def _described(torch: Any, model: Any) -> Any:
    x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    model(x).square().sum().backward()
    return (
        [(name, type(each).__name__) for name, each in model.named_modules()],
        list(model.state_dict()),
        [name for name, _ in model.named_parameters()],
        [each.grad for each in model.parameters()],
        x.grad,
    )


@pytest.mark.parametrize("how", ["NO_REENTRANT", "REENTRANT", "offloaded", "own"])
@differential
def test_wrapped_modules(torch: Any, how: str) -> Any:
    wrappers, _ = _tools(torch)
    calls: list[int] = []

    def counted(function: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs.pop("number"))
        return function(*args, **kwargs)

    def wrap(module: Any) -> Any:
        if how == "offloaded":
            return wrappers.offload_wrapper(module)
        if how == "own":
            return wrappers.checkpoint_wrapper(module, checkpoint_fn=counted, number=3)
        return wrappers.checkpoint_wrapper(module, wrappers.CheckpointImpl[how])

    model = _model(torch)
    wrappers.apply_activation_checkpointing(model, wrap, lambda module: isinstance(module, torch.nn.Linear))
    plain = _model(torch)
    loaded = str(plain.load_state_dict(model.state_dict())), str(model.load_state_dict(plain.state_dict()))
    return _described(torch, model), loaded, model[0].in_features, calls


@differential
def test_arguments_by_name(torch: Any) -> Any:
    wrappers, _ = _tools(torch)
    found = []
    for how in wrappers.CheckpointImpl:
        torch.manual_seed(0)
        layer = wrappers.checkpoint_wrapper(torch.nn.Bilinear(2, 3, 4), how)
        x, y = torch.ones(1, 2, requires_grad=True), torch.ones(1, 3)
        layer(x, input2=y).sum().backward()
        found.append((x.grad, layer.weight.grad))
    sequence = wrappers.checkpoint_wrapper(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU()))
    return found, type(sequence[1]).__name__, outcome(lambda: sequence.nothing, "has no attribute")


@pytest.mark.parametrize("policy", ["transformer", "size", "classes", "custom", "options"])
@differential
def test_policies(torch: Any, policy: str) -> Any:
    wrappers, wrap = _tools(torch)
    linear = torch.nn.Linear
    chosen = {
        "transformer": functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={linear}),
        "size": functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=15),
        "classes": wrap.ModuleWrapPolicy({torch.nn.Sequential}),
        "custom": wrap.CustomPolicy(lambda module: isinstance(module, linear)),
        "options": wrap.CustomPolicy(lambda module: isinstance(module, linear) and {"preserve_rng_state": False}),
    }
    model = _model(torch)
    wrappers.apply_activation_checkpointing(model, auto_wrap_policy=chosen[policy])
    return _described(torch, model)


@pytest.mark.parametrize("only_children", [False, True])
@differential
def test_wrapping_from_the_inside_out(torch: Any, only_children: bool) -> Any:
    wrappers, wrap = _tools(torch)
    model = _model(torch)
    model[1]._wrap_overrides = {"preserve_rng_state": False}
    made, count = wrap._recursive_wrap(
        model, wrap.always_wrap_policy, wrappers.CheckpointWrapper, set(), set(), only_wrap_children=only_children
    )
    names = [(name, type(each).__name__) for name, each in made.named_modules()]
    again = outcome(
        lambda: wrap._recursive_wrap(made, wrap.always_wrap_policy, wrappers.CheckpointWrapper, set(), set()),
        "already wrapped",
    )
    ignored = _model(torch)
    kept, rest = wrap._recursive_wrap(
        ignored, wrap.always_wrap_policy, wrappers.CheckpointWrapper, {ignored[0]}, set(ignored[0].parameters())
    )
    return names, count, again, rest, [name for name, _ in kept.named_modules()]
