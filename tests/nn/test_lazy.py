"""Lazy modules, and parameters and buffers without a shape."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


@differential
def test_uninitialized_parameter(T: Any) -> Any:
    p = T.nn.UninitializedParameter(dtype=T.float64)
    before = (
        repr(p),
        p.dtype,
        str(p.device),
        p.requires_grad,
        p.is_leaf,
        T.is_tensor(p),
        isinstance(p, T.nn.Parameter),
        [repr(each) for each in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)))],
        repr(copy.deepcopy(T.nn.UninitializedParameter(requires_grad=False)).requires_grad),
        outcome(lambda: p.shape, "Can't access the shape of an uninitialized parameter or buffer"),
        outcome(lambda: p + 1, "Attempted to use an uninitialized parameter in"),
        outcome(lambda: p.numel(), "Attempted to use an uninitialized parameter in"),
        outcome(lambda: p.detach(), "Attempted to use an uninitialized parameter in"),
        outcome(lambda: p.share_memory_(), "Can't share memory on an uninitialized parameter or buffer"),
    )
    p.materialize((2, 3))
    after = type(p).__name__, p.shape, p.dtype, p.requires_grad
    p.data.fill_(2.0)
    (p * 3).sum().backward()
    return before, after, p.grad


@differential
def test_uninitialized_buffer(T: Any) -> Any:
    module = T.nn.Module()
    module.kept = T.nn.UninitializedBuffer()
    module.passing = T.nn.UninitializedBuffer(persistent=False)
    before = repr(module.kept), list(module._buffers), sorted(module._non_persistent_buffers_set)
    module.kept.materialize((2,), dtype=T.int64)
    kept = module.kept
    return before, type(kept).__name__, kept.dtype, kept.shape, isinstance(kept, T.nn.Buffer), kept.requires_grad


def test_pickles_keep_the_dtype_and_meta_is_a_device() -> None:
    p = pickle.loads(pickle.dumps(flambeau.nn.UninitializedParameter(dtype=flambeau.float64)))
    p.materialize((3,), device="meta")
    assert (p.dtype, p.device.type, type(p)) == (flambeau.float64, "meta", flambeau.nn.Parameter)


@differential
def test_buffer_class(T: Any) -> Any:
    buffer = T.nn.Buffer(T.ones(2))
    passing = T.nn.Buffer(T.ones(2), persistent=False)
    module = T.nn.Module()
    module.a, module.b = buffer, passing
    return (
        buffer,
        type(buffer).__name__,
        isinstance(buffer, T.nn.Buffer),
        isinstance(T.ones(1), T.nn.Buffer),
        isinstance(buffer, T.nn.Parameter),
        (buffer.persistent, passing.persistent),
        type(buffer + 1).__name__,
        T.nn.Buffer(),
        dict(module.state_dict()),
        list(dict(module.named_buffers())),
    )


@differential
def test_parameters_of_custom_classes(T: Any) -> Any:
    class Custom(T.Tensor):  # type: ignore[misc, name-defined]
        pass

    p = T.nn.Parameter(T.ones(2).as_subclass(Custom))
    module = T.nn.Module()
    module.p = p
    return type(p).__name__, isinstance(p, T.nn.Parameter), p.requires_grad, list(module._parameters)


@differential
def test_lazy_linear(T: Any) -> Any:
    T.manual_seed(0)
    layer = T.nn.LazyLinear(3)
    model = T.nn.Sequential(layer, T.nn.ReLU(), T.nn.LazyLinear(2, bias=False, dtype=T.float32))
    before = (
        repr(model),
        repr(model.state_dict()),
        [repr(each) for each in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)))],
        layer.has_uninitialized_params(),
        outcome(lambda: layer.share_memory(), "Can't share memory on an uninitialized parameter or buffer"),
    )
    result = model(T.ones(4, 5))
    again = copy.deepcopy(model)
    return (
        before,
        result,
        repr(model),
        type(layer).__name__,
        list(vars(layer)["_forward_pre_hooks"]),
        model.state_dict(),
        again(T.ones(4, 5)),
        outcome(lambda: layer.initialize_parameters, "has no attribute 'initialize_parameters'"),
    )


@differential
def test_lazy_modules_change_dtype_before_they_have_a_shape(T: Any) -> Any:
    changes: list[Callable[[Any], Any]] = [lambda m: m.double(), lambda m: m.half(), lambda m: m.to(T.float64)]
    observed = []
    for change in changes:
        layer = change(T.nn.LazyLinear(3))
        observed.append((repr(layer), layer.weight.dtype, repr(layer.weight)))
    layer = T.nn.LazyLinear(3).double()
    return observed, layer(T.ones(1, 2, dtype=T.float64)).dtype, layer.weight.requires_grad


@differential
def test_lazy_modules_load_shapes(T: Any) -> Any:
    T.manual_seed(0)
    full = T.nn.Linear(2, 3)
    layer = T.nn.LazyLinear(3)
    layer.load_state_dict(full.state_dict())
    loaded = repr(layer), layer.has_uninitialized_params(), layer.state_dict()
    result = layer(T.ones(1, 2))
    mismatched = T.nn.LazyLinear(3)
    mismatched.load_state_dict(full.state_dict())
    return (
        loaded,
        result,
        repr(layer),
        repr(T.nn.LazyLinear(3).load_state_dict(T.nn.LazyLinear(3).state_dict())),
        outcome(lambda: full.load_state_dict(T.nn.LazyLinear(3).state_dict()), "Can't access the shape of an"),
        outcome(lambda: T.nn.Sequential(T.nn.LazyLinear(3)).load_state_dict({}), '"0.weight", "0.bias"'),
        outcome(lambda: mismatched(T.ones(1, 5)), "is not equal to in_features from self.weight"),
    )


@differential
def test_own_lazy_modules(T: Any) -> Any:
    Mixin = T.nn.modules.lazy.LazyModuleMixin

    class Lazy(Mixin, T.nn.Module):  # type: ignore[misc, valid-type, name-defined]
        def __init__(self, finish: bool) -> None:
            super().__init__()
            self.finish = finish
            self.scale = T.nn.UninitializedParameter()

        def initialize_parameters(self, x: Any, *, extra: int) -> None:
            if self.finish:
                self.scale.materialize(x.shape)
                self.scale.data.fill_(extra)

        def forward(self, x: Any, extra: int) -> Any:
            return x * self.scale

    class Undefined(Mixin, T.nn.Module):  # type: ignore[misc, valid-type, name-defined]
        pass

    good = Lazy(True)
    return (
        good(T.ones(2), extra=3),
        type(good).__name__,
        outcome(lambda: Lazy(False)(T.ones(2), extra=3), "module Lazy has not been fully initialized"),
        outcome(lambda: Undefined()(1), "initialize_parameters is not implemented for Undefined"),
        outcome(lambda: T.nn.LazyLinear(3)(x=T.ones(1, 2))),
        T.nn.LazyLinear(3)(input=T.ones(1, 2)).shape,
        outcome(lambda: Lazy(True)._replicate_for_data_parallel(), "can't be used with `DataParallel`"),
    )


@pytest.mark.parametrize(
    "name",
    ["dim", "stride", "data_ptr", "element_size", "storage_offset", "untyped_storage", "retain_grad", "backward"]
    + ["requires_grad_", "is_inference", "__len__", "__bool__", "numel"],
)
@differential
def test_methods_of_parameters_without_a_shape(T: Any, name: str) -> Any:
    return outcome(getattr(T.nn.parameter.UninitializedParameter(), name), "uninitialized parameter")


@pytest.mark.parametrize("name", ["register_hook", "register_post_accumulate_grad_hook"])
@differential
def test_hooks_of_parameters_without_a_shape(T: Any, name: str) -> Any:
    parameter = T.nn.parameter.UninitializedParameter()
    return outcome(lambda: getattr(parameter, name)(lambda each: None), "uninitialized parameter")
