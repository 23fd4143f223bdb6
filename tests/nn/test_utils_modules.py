"""`nn.utils`: fusion with batch norms, memory formats, calls with other parameters."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned


def _norm(T: Any, norm: Any) -> Any:
    """A batch norm in evaluation mode, with numbers that are not those of the beginning."""
    for each in norm.parameters():
        T.nn.init.uniform_(each, 0.5, 2)
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    return norm.eval()


@differential(tolerance=1e-5)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_fuse_conv(T, bias, affine):
    observed = []
    for dims in (1, 2, 3):
        layer = getattr(T.nn, f"Conv{dims}d")(2, 3, 2, bias=bias).eval()
        norm = _norm(T, getattr(T.nn, f"BatchNorm{dims}d")(3, affine=affine))
        fused = T.nn.utils.fuse_conv_bn_eval(layer, norm)
        inputs = T.randn(2, 2, *[4] * dims)
        observed += [
            fused is layer,
            fused.weight,
            fused.bias,
            fused(inputs),
            (norm(layer(inputs)) - fused(inputs)).abs().max() < 1e-5,
        ]
    layer = T.nn.ConvTranspose2d(2, 3, 2, bias=bias).eval().requires_grad_(False)
    fused = T.nn.utils.fuse_conv_bn_eval(layer, _norm(T, T.nn.BatchNorm2d(3, affine=affine)), transpose=True)
    return [*observed, fused.weight, fused.bias]


@differential(tolerance=1e-5)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fuse_linear(T, dtype):
    observed = []
    for bias in (True, False):
        layer = T.nn.Linear(2, 3, bias=bias).eval().to(getattr(T, dtype))
        fused = T.nn.utils.fuse_linear_bn_eval(layer, _norm(T, T.nn.BatchNorm1d(3)))
        observed += [fused.weight, fused.bias]
    return observed


@differential
def test_fusion_misuse(T):
    conv, norm = T.nn.Conv2d(1, 1, 1), T.nn.BatchNorm2d(1)
    linear = T.nn.Linear(2, 2).eval()
    fuse = T.nn.utils.fuse_conv_bn_eval
    return (
        outcome(lambda: fuse(conv, norm), "Fusion only for eval!"),
        outcome(lambda: fuse(conv.eval(), T.nn.BatchNorm2d(1, track_running_stats=False).eval()), "must not be None"),
        outcome(lambda: T.nn.utils.fuse_linear_bn_eval(linear, T.nn.BatchNorm1d(3).eval()), "linear.out_features"),
        repr(T.nn.utils.fuse_linear_bn_eval(linear, T.nn.BatchNorm1d(1).eval())),
    )


@differential
def test_memory_formats(T):
    flat = T.nn.Sequential(T.nn.Conv2d(2, 3, 2), T.nn.ConvTranspose2d(3, 2, 2), T.nn.Linear(2, 2))
    solid = T.nn.Sequential(T.nn.Conv3d(2, 3, 2), T.nn.ConvTranspose3d(3, 2, 2))
    same = T.nn.utils.convert_conv2d_weight_memory_format(flat, T.channels_last) is flat
    T.nn.utils.convert_conv3d_weight_memory_format(solid, T.channels_last_3d)
    return same, list(flat.parameters()), list(solid.parameters())


@differential
def test_functional_call(T):
    call = T.func.functional_call
    model = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.BatchNorm1d(2))
    weight = T.eye(2, requires_grad=True)
    inputs = T.tensor([[1.0, 2.0], [3.0, 5.0]])
    mean = {"1.running_mean": T.ones(2), "0.bias": T.zeros(2)}
    result = call(model, [{"0.weight": weight}, mean], (inputs,))
    (result * inputs).sum().backward()
    everything = dict(model.state_dict())
    return (
        result,
        weight.grad,
        mean,
        dict(model.state_dict()),
        [each.grad is None for each in model.parameters()],
        call(model, everything, inputs, strict=True),
        call(model, {"0.unused": weight}, inputs),
        hasattr(model[0], "unused"),
        outcome(lambda: call(model, {"0.weight": weight}, inputs, strict=True), "Missing key(s): '0.bias', '1.bias'"),
        outcome(lambda: call(model, everything | {"x": weight}, inputs, strict=True), "Unexpected key(s): 'x'"),
        outcome(lambda: call(model, {"5.weight": weight}, inputs), "has no attribute `5`"),
        outcome(lambda: call(model, {"0.weight": 3}, inputs), "is not an instance of torch.Tensor"),
        outcome(lambda: call(model, 3, inputs), "to be a dict, or a list/tuple of dicts"),
        outcome(lambda: call(model, [3], inputs), "to be dictionaries"),
        outcome(lambda: call(model, [{"a": weight}, {"a": weight}], inputs), "appeared in multiple dictionaries"),
    )


@differential
def test_functional_call_of_tied_and_assigned_tensors(T):
    class Tied(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = T.nn.Parameter(T.zeros(1))
            self.b = self.a
            self.register_buffer("count", T.zeros(1))

        def forward(self, x, factor=1):
            self.count = self.count + 1
            return (x + self.a * 10 + self.b) * factor

    call = T.func.functional_call
    module = Tied()
    one, two, count = T.ones(1), T.full((1,), 2.0), {"count": T.full((1,), 7.0)}
    older = importlib.import_module(f"{T.__name__}.nn.utils.stateless").functional_call
    return (
        call(module, {"a": one}, one),
        call(module, {"a": one}, one, {"factor": 3}),
        call(module, {"a": one}, one, tie_weights=False),
        call(module, {"a": one, "b": one}, one),
        call(module, {"a": one}, one, strict=False),
        outcome(lambda: call(module, {"a": one, "b": two}, one), "which are tied"),
        call(module, {"a": one, "b": two}, one, tie_weights=False),
        module.count,
        call(module, count, one),
        count,
        module.count,
        warned(lambda: older(module, {"a": one}, one), "torch.func.functional_call"),
    )


@differential
def test_stacked_states(T):
    models = [T.nn.BatchNorm1d(2) for _ in range(3)]
    parameters, buffers = T.func.stack_module_state(models)
    models[0].eval()
    return (
        parameters,
        buffers,
        outcome(lambda: T.func.stack_module_state([]), "at least one model"),
        outcome(lambda: T.func.stack_module_state(models), "training/eval mode"),
        outcome(lambda: T.func.stack_module_state([T.nn.ReLU(), T.nn.Tanh()]), "same class"),
    )


@differential
def test_exports(T):
    return sorted(name for name in T.nn.utils.__all__)
