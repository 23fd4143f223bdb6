"""The rules of autocast, op by op, against PyTorch's: by its operator database, and by what its dispatcher lists."""

from __future__ import annotations

import contextlib
import itertools
import types
import warnings
from collections.abc import Iterator
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


@contextlib.contextmanager
def _cuda_without_data(lower: Any) -> Iterator[None]:
    """PyTorch's autocast for a CUDA device that is not there."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        pytorch.set_autocast_enabled("cuda", True)
        pytorch.set_autocast_dtype("cuda", lower)
        try:
            yield
        finally:
            pytorch.set_autocast_enabled("cuda", False)
            pytorch.set_autocast_dtype("cuda", pytorch.float16)
            pytorch.clear_autocast_cache()


def _expected(info: Any, call: Any, device: str, lower: str) -> list[str] | None:
    """The dtypes of PyTorch's result; None where it has none."""
    try:
        if device == "cpu":
            with pytorch.autocast("cpu", getattr(pytorch, lower)):
                return list(_leaves(info.op(call[0], *call[1], **call[2])))
        with _cuda_without_data(getattr(pytorch, lower)):
            input, args, kwargs = _fake(call)
            return list(_leaves(info.op(input, *args, **kwargs)))
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


_OPERATORS: dict[str, Any] = {
    "power": lambda x: x**2,
    "power of tensors": lambda x: x**x,
    "power of a number": lambda x: 2**x,
    "reflected power": lambda x: x.__rpow__(x),
    "quotient of a number": lambda x: 1 / x,
    "quotient": lambda x: x / 2,
    "remainder": lambda x: x % 2,
    "product": lambda x: x @ x.t(),
    "sum to a size": lambda x: x.sum_to_size(1, 3),
    "nothing to sum": lambda x: x.sum_to_size(2, 3),
}


@pytest.mark.parametrize("name", _OPERATORS)
def test_operators_and_methods_on_cuda(name, monkeypatch):
    rules_of_cuda_on_cpu(monkeypatch)
    run = _OPERATORS[name]
    with _cuda_without_data(pytorch.float16):
        expected = run(pytorch.empty(2, 3, dtype=pytorch.float16, device="cuda")).dtype
    with flambeau.autocast("cpu", flambeau.float16):
        assert str(run(flambeau.ones(2, 3, dtype=flambeau.float16)).dtype) == str(expected)


def _names(node: Any) -> list[str]:
    """The nodes from one on, along the first input of each."""
    names = []
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@pytest.mark.parametrize(
    ("options", "shape"),
    [({}, (6, 5)), ({"reduction": "sum"}, (6, 5)), ({"ignore_index": 1}, (6, 5)), ({}, (2, 5, 3)), ({}, (5,))],
)
def test_cross_entropy_on_cuda_takes_logarithms_in_the_precision_of_the_scores(options, shape, monkeypatch):
    """PyTorch has the log-probabilities in half precision there, and the losses in float32."""
    rules_of_cuda_on_cpu(monkeypatch)
    flambeau.manual_seed(0)
    scores = flambeau.randn(shape).bfloat16().requires_grad_()
    classes = flambeau.randint(0, 5, (shape[0], *shape[2:]) if len(shape) > 1 else ())
    F, dim = flambeau.nn.functional, min(len(shape) - 1, 1)
    steps = F.nll_loss(scores.log_softmax(dim).float(), classes, **options)
    expected = flambeau.autograd.grad(steps, scores)[0]
    with flambeau.autocast("cpu", flambeau.bfloat16):
        loss = F.cross_entropy(scores, classes, **options)
    assert loss.dtype is flambeau.float32
    assert loss.equal(steps)
    assert flambeau.autograd.grad(loss, scores, retain_graph=True)[0].equal(expected)
    names = [each for each in _names(loss.grad_fn) if not each.startswith("View")]
    assert names[1:3] == ["ToCopyBackward0", "LogSoftmaxBackward0"]


def test_other_forms_of_cross_entropy_on_cuda(monkeypatch):
    rules_of_cuda_on_cpu(monkeypatch)
    flambeau.manual_seed(0)
    F = flambeau.nn.functional
    scores, classes = flambeau.randn(6, 5).bfloat16(), flambeau.randint(0, 5, (6,))
    logs, weight = scores.log_softmax(1), flambeau.rand(5)
    even = -logs.float().sum(1).mean() / 5
    with flambeau.autocast("cpu", flambeau.bfloat16):
        weighted = F.cross_entropy(scores, classes, weight)
        smooth = F.cross_entropy(scores, classes, label_smoothing=0.5)
        soft = F.cross_entropy(scores, scores.softmax(1).bfloat16())
    assert weighted.equal(F.nll_loss(logs.float(), classes, weight))
    flambeau.testing.assert_close(smooth, 0.5 * F.nll_loss(logs.float(), classes) + 0.5 * even)
    assert soft.dtype is flambeau.float32


def test_distances_on_cuda_have_their_norms_in_float32(monkeypatch):
    rules_of_cuda_on_cpu(monkeypatch)
    flambeau.manual_seed(0)
    F = flambeau.nn.functional
    one, other, third = (flambeau.randn(4, 8).bfloat16() for _ in range(3))

    def distance(x: Any, y: Any) -> Any:
        return ((x - y) + 1e-6).float().norm(dim=1)

    with flambeau.autocast("cpu", flambeau.bfloat16):
        near = F.pairwise_distance(one, other)
        triplet = F.triplet_margin_with_distance_loss(one, other, third)
    assert near.dtype is flambeau.float32
    flambeau.testing.assert_close(near, distance(one, other))
    expected = (1 + distance(one, other) - distance(one, third)).clamp_min(0).mean()
    flambeau.testing.assert_close(triplet, expected)
