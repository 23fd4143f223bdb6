"""The rules of autocast, op by op, against PyTorch's: by its operator database, and by what its dispatcher lists."""

from __future__ import annotations

import itertools
import types
import warnings
from typing import Any

import pytest
import torch as pytorch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

import flambeau
from flambeau._dispatch.arguments import autocast_rules
from flambeau._dispatch.public import registry
from tests.conformance.translate import translate
from tests.support.autocast import rules_of_cuda_on_cpu

ALSO = {
    "__matmul__", "__rmatmul__", "add", "einsum", "exp", "inner", "linalg.matrix_power", "linalg.multi_dot", "mv",
    "sum", "nn.functional.gelu", "nn.functional.multi_head_attention_forward", "softmax",
    "nn.functional.linear_cross_entropy",
}  # fmt: skip
"""Composed ops, and some that autocast leaves alone on one of the devices."""

KNOWN = {
    "cpu": {"pca_lowrank", "svd_lowrank", "tensordot"},  # steps in between are in the lower precision there
    "cuda": {"polar", "stft", "view_as_complex"},  # half precision that the CPU has no kernel for
}

WITHOUT_RULE = {
    "cpu": {
        "_addmm_activation", "_convolution", "_grid_sampler_2d_cpu_fallback", "_lu_with_info", "mkldnn_rnn_layer",
        "_native_multi_head_attention", "cross_entropy_loss", "fake_quantize_per_tensor_affine", "nll_loss2d",
        "multilabel_margin_loss_forward", "reflection_pad1d", "reflection_pad2d", "replication_pad1d",
        "replication_pad2d", "replication_pad3d",
    },
    "cuda": {
        "_convolution", "_scaled_dot_product_flash_attention", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell",
        "cudnn_convolution", "cudnn_convolution_transpose", "frobenius_norm", "nll_loss2d", "nuclear_norm",
    },
}  # fmt: skip
"""What the dispatcher lists and users do not call: the functions that they call in its place have the rule."""


def _leaves(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, (pytorch.Tensor, flambeau.Tensor)):
        yield str(value.dtype)


def _in(dtype: Any, value: Any) -> Any:
    return tree_map(
        lambda each: each.to(dtype) if isinstance(each, pytorch.Tensor) and each.is_floating_point() else each, value
    )


def _fake(value: Any) -> Any:
    """Tensors on a CUDA device that is not there: they have dtypes and shapes."""
    return tree_map(
        lambda each: (
            pytorch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cuda")
            if isinstance(each, pytorch.Tensor)
            else each
        ),
        value,
    )


def _expected(info: Any, call: Any, device: str, lower: str) -> list[str] | None:
    """The dtypes of PyTorch's result; None where it has none."""
    try:
        if device == "cpu":
            with pytorch.autocast("cpu", getattr(pytorch, lower)):
                return list(_leaves(info.op(call[0], *call[1], **call[2])))
        with FakeTensorMode(allow_non_fake_inputs=True):
            input, args, kwargs = _fake(call)
            pytorch.set_autocast_enabled("cuda", True)
            pytorch.set_autocast_dtype("cuda", getattr(pytorch, lower))
            try:
                return list(_leaves(info.op(input, *args, **kwargs)))
            finally:
                pytorch.set_autocast_enabled("cuda", False)
                pytorch.set_autocast_dtype("cuda", pytorch.float16)
                pytorch.clear_autocast_cache()
    except Exception:
        return None


def _ruled(device):
    """The public functions whose records have a rule for a type of device."""
    registry.load_all()
    return {name for name, rules in autocast_rules.RULED.items() if device in rules}


@pytest.mark.parametrize(("device", "lower"), [("cpu", "bfloat16"), ("cpu", "float16"), ("cuda", "float16")])
def test_database(device, lower, monkeypatch):
    if device == "cuda":
        rules_of_cuda_on_cpu(monkeypatch)
    named = _ruled(device) | ALSO
    wrong, seen = [], set()
    for info in op_db:
        if info.name not in named or info.name in KNOWN[device]:
            continue
        function = translate(info.op)
        for sample in itertools.islice(info.sample_inputs_func(info, "cpu", pytorch.float32, False), 2):
            for given in ("float32", lower):
                call = _in(getattr(pytorch, given), (sample.input, sample.args, sample.kwargs))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = _expected(info, call, device, lower)
                    if expected is None:
                        continue
                    seen.add(info.name)
                    input, args, kwargs = translate(call)
                    with flambeau.autocast("cpu", getattr(flambeau, lower)):
                        actual = list(_leaves(function(input, *args, **kwargs)))
                if actual != expected:
                    wrong.append(f"{info.name} of {given}: {expected} in PyTorch, {actual} in Flambeau")
    assert not wrong, "\n".join(wrong)
    assert len(seen) > 80


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_listed_op_has_a_rule(device):
    key = f"Autocast{device.upper()}"
    listed = {
        name.removeprefix("aten::").partition(".")[0]
        for name in pytorch._C._dispatch_get_all_op_names()
        if pytorch._C._dispatch_has_kernel_for_dispatch_key(name, key)
    }
    words = {name.removeprefix("nn.functional.").replace(".", "_") for name in _ruled(device)}
    missing = {name for name in listed - words - WITHOUT_RULE[device] if "upsample" not in name}
    assert not missing


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_rules_are_for_public_functions(device):
    ruled, found = _ruled(device), set()
    for functions in registry.FUNCTIONS.values():
        for function in map(registry.resolved, functions.values()):
            function = getattr(function, "__func__", function)  # public functions are bound to their namespace
            if "ruled" in getattr(function, "__globals__", ()) or hasattr(function, "op"):
                name = function.__qualname__.removeprefix("Tensor.")
                found.add(f"{function.__module__}.{name}".removeprefix("flambeau."))
    assert ruled <= found


def test_binary_cross_entropy_is_refused_on_cuda(monkeypatch):
    rules_of_cuda_on_cpu(monkeypatch)
    half = flambeau.full((2,), 0.5)
    with flambeau.autocast("cpu"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        flambeau.nn.functional.binary_cross_entropy(half, half)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_functional_softmax_is_in_float32_on_cuda(name, monkeypatch):
    rules_of_cuda_on_cpu(monkeypatch)
    info = types.SimpleNamespace(op=getattr(pytorch.nn.functional, name))
    expected = _expected(info, (pytorch.ones(2, 3).half(), (-1,), {}), "cuda", "float16")
    with flambeau.autocast("cpu", flambeau.float16):
        result = getattr(flambeau.nn.functional, name)(flambeau.ones(2, 3).half(), -1)
    assert list(_leaves(result)) == expected == ["torch.float32"]
