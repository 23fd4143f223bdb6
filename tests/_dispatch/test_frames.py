"""How many Python functions run between a call and its kernel: a count, which no load of the machine changes.

The numbers are what there is, and a few more. Whoever adds a function to the way of every op is told here.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as T
from flambeau._core.slots import SLOTS
from flambeau._dispatch.call.primitive import CALLS
from flambeau.distributions import Categorical
from tests.support.autocast import rules_of_cuda_on_cpu


def _one_pass(loss: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: loss().sum().backward()


def _add_to_row(tensor: Any) -> None:
    tensor[1] += 1


def _cases() -> dict[str, tuple[int, Callable[[], Any]]]:
    a, b, x = T.ones(4, 4), T.ones(4, 4), T.ones(4, 4, requires_grad=True)
    integers, image, rows, numbers = T.ones(4, 4, dtype=T.int64), T.ones(1, 2, 6, 6), T.ones(2, 4), T.tensor([1, 3])
    linear, conv, norm, embedding = T.nn.Linear(4, 4), T.nn.Conv2d(2, 2, 3), T.nn.LayerNorm(4), T.nn.Embedding(8, 4)
    cell, mask, chances = T.nn.LSTMCell(4, 4), a > 0, T.ones(1, 4, requires_grad=True)
    weight = T.nn.Parameter(T.ones(4))
    weight.grad, adam = T.ones(4), T.optim.Adam([weight])
    return {
        "a * b": (1, lambda: a * b),
        "a + integers": (1, lambda: a + integers),
        "x * b, recorded": (3, lambda: x * b),
        "x.exp(), recorded": (3, lambda: x.exp()),
        "a.sum()": (6, lambda: a.sum()),
        "x @ b, recorded": (7, lambda: x @ b),
        "a.view": (5, lambda: a.view(2, 8)),
        "x.reshape, recorded": (6, lambda: x.reshape(-1)),
        "x[0], recorded": (6, lambda: x[0]),
        "a[positions]": (5, lambda: a[numbers]),
        "a[mask]": (4, lambda: a[mask]),
        "a[None]": (5, lambda: a[None]),
        "integers == 0": (4, lambda: integers == 0),
        "integers[:1].float()": (17, lambda: integers[:1].float()),
        "a.reshape(-1, 8)": (9, lambda: a.reshape(-1, 8)),
        "cat": (7, lambda: T.cat([a, b])),
        "cat, recorded": (14, lambda: T.cat([x, b])),
        "softmax": (7, lambda: a.softmax(1)),
        "Linear": (13, lambda: linear(rows)),
        "Linear on a vector": (19, lambda: linear(rows[0])),
        "Categorical, log_prob": (114, lambda: Categorical(chances).log_prob(numbers[:1])),
        "Categorical, sample": (44, Categorical(chances).sample),
        "Conv2d": (32, lambda: conv(image)),
        "LayerNorm": (31, lambda: norm(rows)),
        "Embedding": (20, lambda: embedding(numbers)),
        "LSTMCell": (70, lambda: cell(rows)),
        "x * b, backward": (46, _one_pass(lambda: x * b)),
        "Linear, backward": (69, _one_pass(lambda: linear(rows))),
        "Linear on a vector, backward": (82, _one_pass(lambda: linear(rows[0]))),
        "a cast, backward": (72, _one_pass(lambda: x.to(T.bfloat16))),
        "a[1] += 1": (27, lambda: _add_to_row(a)),
        "Adam": (74, adam.step),
        "Conv2d, backward": (101, _one_pass(lambda: conv(image))),
    }


@pytest.mark.parametrize("name", _cases())
def test_calls_stay_short(name: str) -> None:
    most, call = _cases()[name]
    for _ in range(CALLS + 2):  # by then ops have functions of their own
        call()
    assert _functions_run(call) <= most


def _functions_run(call: Callable[[], Any]) -> int:
    count = -1  # without the lambda itself

    def notice(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        # Python 3.14 takes and gives back locks by functions: `locks.py` says why.
        count += event == "call" and frame.f_code.co_name not in ("_take", "_give_back")

    gc.disable()  # finalizers of other tests are none of ours
    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


# ----- states ---------------------------------------------------------------------------------------------------------


def _ops_of(dtype: Any) -> dict[str, Callable[[], Any]]:
    """Sixty ops on operands of one dtype."""
    F = T.nn.functional
    a, b, image = T.rand(4, 4).to(dtype), T.rand(4, 4).to(dtype), T.rand(1, 2, 6, 6).to(dtype)
    v, batch, ids, mask = T.rand(4).to(dtype), T.rand(2, 4, 4).to(dtype), T.tensor([1, 3]), T.eye(4).bool()
    kernel, heads = T.rand(2, 2, 3, 3).to(dtype), T.rand(1, 2, 4, 4).to(dtype)
    return {
        "add": lambda: a + b, "mul": lambda: a * 2.0, "div": lambda: a / b, "sub": lambda: T.sub(a, b),
        "neg": lambda: -a, "abs": lambda: a.abs(), "exp": lambda: a.exp(), "log": lambda: T.log(a),
        "log1p": lambda: a.log1p(), "rsqrt": lambda: a.rsqrt(), "reciprocal": lambda: a.reciprocal(),
        "sin": lambda: a.sin(), "tan": lambda: a.tan(), "tanh": lambda: a.tanh(), "sigmoid": lambda: a.sigmoid(),
        "sqrt": lambda: a.sqrt(), "square": lambda: a.square(), "pow": lambda: a.pow(2), "atan2": lambda: a.atan2(b),
        "maximum": lambda: T.maximum(a, b), "eq": lambda: a == b, "relu": lambda: a.relu(), "gelu": lambda: F.gelu(a),
        "silu": lambda: F.silu(a), "softplus": lambda: F.softplus(a), "leaky_relu": lambda: F.leaky_relu(a),
        "where": lambda: T.where(mask, a, b), "masked_fill": lambda: a.masked_fill(mask, 0.0),
        "sum": lambda: a.sum(), "sum of rows": lambda: a.sum(1), "mean": lambda: a.mean(1), "amax": lambda: a.amax(1),
        "prod": lambda: a.prod(1), "cumsum": lambda: a.cumsum(1), "norm": lambda: a.norm(),
        "softmax": lambda: a.softmax(1), "log_softmax": lambda: a.log_softmax(1),
        "logsumexp": lambda: a.logsumexp(1), "mm": lambda: a @ b, "torch.mm": lambda: T.mm(a, b),
        "matmul": lambda: T.matmul(a, v), "bmm": lambda: T.bmm(batch, batch), "addmm": lambda: T.addmm(v, a, b),
        "linear": lambda: F.linear(a, b), "linear with bias": lambda: F.linear(a, b, v),
        "einsum": lambda: T.einsum("ij,jk->ik", a, b), "dot": lambda: T.dot(v, v),
        "conv2d": lambda: F.conv2d(image, kernel), "max_pool2d": lambda: F.max_pool2d(image, 2),
        "layer_norm": lambda: F.layer_norm(a, (4,)), "group_norm": lambda: F.group_norm(image, 1),
        "attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
        "cat": lambda: T.cat([a, b]), "stack": lambda: T.stack([a, b]), "view": lambda: a.view(2, 8),
        "transpose": lambda: a.transpose(0, 1), "index": lambda: a[1], "index_select": lambda: a.index_select(0, ids),
        "embedding": lambda: F.embedding(ids, a), "clone": lambda: a.clone(), "addcmul": lambda: T.addcmul(a, a, b),
        "mse_loss": lambda: F.mse_loss(a, b), "pad": lambda: F.pad(a, (1, 1)), "to": lambda: a.to(T.float64),
    }  # fmt: skip


@functools.cache
def _plain_call(name: str, dtype: Any) -> tuple[int, Any]:
    """How many functions a call in no particular state runs, and the dtype of its result."""
    call = _ops_of(dtype)[name]
    for _ in range(CALLS + 2):
        result = call()
    return _functions_run(call), result.dtype


_STATES: dict[str, Callable[[], Any]] = {
    "no_grad": T.no_grad,
    "inference mode": T.inference_mode,
    "autocast": lambda: T.autocast("cpu", T.bfloat16),
    "autocast, by the rules of CUDA": lambda: T.autocast("cpu", T.bfloat16),
}


@pytest.mark.parametrize("state", _STATES)
def test_states_keep_calls_short(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most one function more runs than in a plain call. Casts are ops of their own: calls with some are left out."""
    if "CUDA" in state:
        rules_of_cuda_on_cpu(monkeypatch)
    casts: list[Any] = []
    convert = SLOTS.converted
    monkeypatch.setattr(SLOTS, "converted", lambda *args: casts.append(args) or convert(*args))
    longer, compared = {}, set()
    for dtype in (T.float32, T.bfloat16):
        for name, call in _ops_of(dtype).items():
            plain, expected = _plain_call(name, dtype)
            casts.clear()
            with _STATES[state]():
                result = call()
                if casts or result.dtype is not expected:
                    continue
                compared.add(name)
                count = _functions_run(call)
            if count > plain + ("autocast" in state):
                longer[f"{name} of {dtype}"] = f"{plain} functions, {count} in this state"
    assert not longer
    assert compared == set(_ops_of(T.float32))


def test_cast_weights_are_found_without_a_call() -> None:
    full, lower, rows = T.nn.Linear(4, 4), T.nn.Linear(4, 4).bfloat16(), T.ones(2, 4, dtype=T.bfloat16)
    for _ in range(CALLS + 2):
        lower(rows)
    plain = _functions_run(lambda: lower(rows))
    with T.autocast("cpu", T.bfloat16):
        full(rows)
        assert _functions_run(lambda: full(rows)) <= plain + 1
