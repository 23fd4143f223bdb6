"""`autocast`: the region, its cache, gradients, custom functions, threads."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import pytest

import flambeau
from flambeau._dispatch.dispatch import Primitive
from flambeau._dispatch.public import protocol
from tests.support.differential import differential, outcome, warned

LOWER = pytest.mark.parametrize("lower", ["bfloat16", "float16"])


def _model(T: Any) -> Any:
    return T.nn.Sequential(T.nn.Linear(8, 16), T.nn.LayerNorm(16), T.nn.ReLU(), T.nn.Linear(16, 4))


@differential
@LOWER
def test_settings(T, lower):
    dtype = getattr(T, lower)
    state = lambda: (T.is_autocast_enabled("cpu"), T.get_autocast_dtype("cpu"), T.is_autocast_cache_enabled())  # noqa: E731
    seen = [state(), T.is_autocast_enabled(), T.get_autocast_dtype("cuda")]
    with T.autocast("cpu", dtype, cache_enabled=False) as region:
        seen += [state(), type(region).__name__, region.prev, region.fast_dtype]
        with T.autocast("cpu", enabled=False):
            seen.append(state())
            with T.autocast("cpu", T.bfloat16, cache_enabled=True):
                seen.append(state())
        seen.append(state())
    T.set_autocast_enabled("cpu", True)
    T.set_autocast_dtype("cpu", dtype)
    seen += [state(), (T.ones(2, 2) @ T.ones(2, 2)).dtype]
    T.set_autocast_enabled("cpu", False)
    T.set_autocast_dtype("cpu", T.bfloat16)
    T.set_autocast_enabled(True)
    seen += [T.is_autocast_enabled(), state()]
    T.set_autocast_enabled(False)
    seen += [T.autocast_increment_nesting(), T.autocast_decrement_nesting(), T.clear_autocast_cache()]
    return [*seen, state(), [T.amp.is_autocast_available(each) for each in ("cpu", "cuda", "meta")]]


@differential
@LOWER
def test_nesting_and_decorator(T, lower):
    x = T.ones(2, 2)

    @T.autocast("cpu", dtype=getattr(T, lower))
    def product(a, b):
        """A product."""
        return a @ b

    region = T.autocast("cpu", getattr(T, lower))
    seen = [product(x, x), product.__name__, product.__doc__, (x @ x).dtype]
    with region:
        seen.append((x @ x).dtype)
        with T.autocast("cpu", enabled=False):
            seen += [(x @ x).dtype, product(x, x).dtype]
        with T.autocast("cpu", T.bfloat16):
            seen.append((x @ x).dtype)
        seen.append(x.mm(x).dtype)
        seen.append(outcome(lambda: _raise_inside(T)))
        seen.append(T.is_autocast_enabled("cpu"))
    mode = T.amp._enter_autocast("cpu", getattr(T, lower))
    seen.append((x @ x).dtype)
    T.amp._exit_autocast(mode)
    return [*seen, (x @ x).dtype]


def _raise_inside(T: Any) -> None:
    with T.autocast("cpu", enabled=False):
        raise KeyError("x")


@differential
def test_misuse(T):
    x = T.ones(2, 2)
    with T.autocast("cpu"):
        mixed = [
            outcome(lambda: T.cat([x.half(), x]), "Unexpected floating ScalarType"),
            outcome(lambda: x.double() @ x, "same dtype"),
            outcome(lambda: x.long() @ x, "same dtype"),
        ]
    return (
        mixed,
        outcome(lambda: T.autocast(T.device("cpu")), "Expected `device_type` of type `str`"),
        outcome(lambda: T.autocast("nothing"), "Expected one of cpu, cuda"),
        outcome(lambda: T.autocast("meta"), "unsupported scalarType"),
        outcome(lambda: T.autocast()),
        outcome(lambda: T.is_autocast_enabled("meta"), "unknown device type for autocast"),
        outcome(lambda: T.set_autocast_enabled("cpu", 1), "must be bool"),
        warned(lambda: T.autocast("cuda")._enabled, "CUDA is not available"),
        warned(lambda: T.autocast("cpu", T.float32)._enabled, "In CPU autocast, but the target dtype is not supported"),
        outcome(lambda: T.amp.custom_fwd(device_type=3), "Expected `device_type` of type `str`"),
        outcome(lambda: T.amp.custom_bwd(device_type=3), "Expected `device_type` of type `str`"),
    )


@differential
def test_older_names(T):
    def opened(action):
        with action() as region:
            return region.fast_dtype, T.is_autocast_enabled("cpu")

    return (
        warned(lambda: opened(T.cpu.amp.autocast), "`torch.cpu.amp.autocast(args...)` is deprecated"),
        warned(lambda: opened(T.cuda.amp.autocast), "`torch.cuda.amp.autocast(args...)` is deprecated"),
        warned(lambda: T.cuda.amp.GradScaler().is_enabled(), "`torch.cuda.amp.GradScaler(args...)` is deprecated"),
        warned(lambda: T.cpu.amp.GradScaler().is_enabled(), "`torch.cpu.amp.GradScaler(args...)` is deprecated"),
        warned(lambda: T.cuda.amp.custom_fwd(lambda ctx: 0) and None, "`torch.cuda.amp.custom_fwd(args...)`"),
        warned(lambda: T.cuda.amp.custom_bwd(lambda ctx: 0) and None, "`torch.cuda.amp.custom_bwd(args...)`"),
        warned(lambda: T.is_autocast_cpu_enabled(), "torch.is_autocast_enabled('cpu')"),
        warned(lambda: T.set_autocast_cpu_enabled(False), "torch.set_autocast_enabled('cpu', enabled)"),
        warned(lambda: T.get_autocast_gpu_dtype(), "torch.get_autocast_dtype('cuda')"),
        warned(lambda: T.set_autocast_cpu_dtype(T.bfloat16), "torch.set_autocast_dtype('cpu', dtype)"),
        T.cuda.amp.amp_definitely_not_available(),
        [T.cpu.is_available(), T.cpu.device_count(), T.cpu.current_device(), T.cpu.synchronize()],
    )


@differential
def test_weights_are_cast_once(T):
    weight = T.ones(2, 2, requires_grad=True)
    source = lambda result: result.grad_fn.next_functions  # noqa: E731
    same = lambda a, b: source(a)[0][0] is source(b)[0][0]  # noqa: E731
    with T.autocast("cpu"):
        with T.no_grad():
            T.mm(weight, weight)
        first = T.mm(weight, weight)
        seen = [same(first, T.mm(weight, weight)), source(first)[0][0].name()]
        with T.autocast("cpu", enabled=False):
            pass
        seen.append(same(first, T.mm(weight, weight)))
        computed = weight * 2
        seen.append(source(T.mm(computed, weight))[0][0] is source(T.mm(computed, weight))[0][0])
        T.clear_autocast_cache()
        seen.append(same(first, T.mm(weight, weight)))
    with T.autocast("cpu", cache_enabled=False):
        seen.append(same(T.mm(weight, weight), T.mm(weight, weight)))
    with T.autocast("cpu"):
        seen.append(same(first, T.mm(weight, weight)))
    first.sum().backward()
    return [*seen, weight.grad]


@differential(tolerance=2e-3)
@LOWER
def test_training(T, lower):
    model = _model(T)
    optimizer = T.optim.SGD(model.parameters(), lr=0.05)
    inputs, targets = T.randn(8, 8), T.randint(4, (8,))
    seen = []
    for _ in range(3):
        optimizer.zero_grad()
        with T.autocast("cpu", getattr(T, lower)):
            outputs = model(inputs)
            loss = T.nn.functional.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        seen += [outputs.dtype, loss.dtype, loss.item(), [each.grad.dtype for each in model.parameters()]]
    return seen


@differential(tolerance=1e-4)
def test_backward_inside(T):
    weight, inputs = T.randn(3, 3, requires_grad=True), T.randn(3, 3, requires_grad=True)
    with T.autocast("cpu"):
        (inputs @ weight).sum().backward()
    return weight.grad.dtype, inputs.grad.dtype, inputs.grad.shape


@differential(tolerance=1e-4)
@LOWER
def test_composed_ops(T, lower):
    dtype = getattr(T, lower)
    x = T.randn(4, 3, 8) / 4
    attention = T.nn.MultiheadAttention(8, 2)
    cases = {}
    with T.autocast("cpu", dtype):
        cases["einsum"] = T.einsum("abc,adc->abd", x, x)
        cases["attention"] = [each.dtype for each in attention(x, x, x)]
        cases["transformer"] = T.nn.TransformerEncoderLayer(8, 2, 16)(x).dtype
        cases["gru"] = [each.dtype for each in T.nn.GRU(8, 4)(x)]
        packed = T.nn.utils.rnn.pack_padded_sequence(x, [4, 3, 1])
        cases["packed"] = [T.nn.GRU(8, 4)(packed)[0].data.dtype, T.nn.RNN(8, 4)(packed)[0].data.dtype]
        cases["rnn"] = [each.dtype for value in (x, x.to(dtype)) for each in T.nn.RNN(8, 4)(value)]
        cases["cells"] = [
            [each.dtype for each in T.nn.LSTMCell(8, 4)(x[0])],
            [each.dtype for each in T.nn.LSTMCell(8, 4)(x[0].to(dtype))],
            T.nn.GRUCell(8, 4)(x[0]).dtype,
            T.nn.RNNCell(8, 4)(x[0]).dtype,
        ]
        cases["lstm"] = [each.dtype for each in T.nn.LSTM(8, 4)(x.to(dtype))[1]]
        cases["powers"] = [T.linalg.matrix_power(T.eye(2), n).dtype for n in (0, 1, 2, 3, -1, -2)]
        cases["inner"] = [T.inner(a, b).dtype for a, b in ((x[0], x[0]), (x[0, 0], x[0, 0]), (x[0, 0, 0], x))]
        cases["bilinear"] = T.nn.Bilinear(8, 8, 3)(x, x).dtype
        cases["reversed"] = x[0].__rmatmul__(x[0].T).dtype
        cases["pad"] = [T.nn.functional.pad(x.to(dtype), (1, 1), mode=m).dtype for m in ("constant", "reflect")]
        fine = T.full((2, 2), 1.0009765625)  # no number of bfloat16
        cases["out"] = T.mm(fine, fine, out=T.empty(2, 2))
        cases["out of any rank"] = T.matmul(fine, fine[0], out=T.empty(2))
        cases["out with a sum"] = T.addmm(fine, fine, fine, out=T.empty(2, 2))
        cases["out of the narrow type"] = outcome(
            lambda: T.mm(fine, fine, out=T.empty(2, 2, dtype=getattr(T, lower))), "Expected out tensor to have dtype"
        )
        cases["in place"] = T.ones(2, 2).addmm_(T.ones(2, 2), T.ones(2, 2)).dtype
        cases["meta"] = (x.to("meta") @ x.to("meta").mT).dtype
        cases["untouched"] = [(x + x).dtype, x.exp().dtype, x.softmax(-1).dtype, T.nn.functional.gelu(x).dtype]
    return cases


@differential
def test_custom_functions(T):
    class Plain(T.autograd.Function):
        @staticmethod
        @T.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @T.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append((T.is_autocast_enabled("cpu"), T.get_autocast_dtype("cpu")))
            return grad @ b.T, a.T @ grad

    class InSingle(T.autograd.Function):
        @staticmethod
        @T.amp.custom_fwd(device_type="cpu", cast_inputs=T.float32)
        def forward(ctx, a, pair):
            seen.append((a.dtype, pair["b"].dtype, pair["n"].dtype, T.is_autocast_enabled("cpu")))
            return a @ pair["b"]

        @staticmethod
        @T.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(T.is_autocast_enabled("cpu"))
            return grad, None

    seen: list[Any] = []
    x = T.ones(2, 2, requires_grad=True)
    with T.autocast("cpu", T.float16):
        result = Plain.apply(x, x)
        single = InSingle.apply(x.half(), {"b": T.ones(2, 2).bfloat16(), "n": T.ones(1, dtype=T.float64)})
    result.sum().backward()
    single.sum().backward()
    outside = Plain.apply(x, x)
    outside.sum().backward()
    return result, single, outside.dtype, x.grad, seen


@differential
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_run_again_under_the_same_rules(T, use_reentrant):
    checkpoint = importlib.import_module(f"{T.__name__}.utils.checkpoint").checkpoint
    weight, inputs, seen = T.ones(2, 2, requires_grad=True), T.ones(2, 2, requires_grad=True), []

    def product(x):
        seen.append((T.is_autocast_enabled("cpu"), T.get_autocast_dtype("cpu")))
        return x @ weight

    with T.autocast("cpu", T.float16):
        result = checkpoint(product, inputs, use_reentrant=use_reentrant)
    result.sum().backward()
    return seen, result.dtype, weight.grad, T.is_autocast_enabled("cpu"), T.get_autocast_dtype("cpu")


def test_other_threads_are_left_alone():
    seen: list[Any] = []
    ready, done = threading.Event(), threading.Event()

    def other() -> None:
        seen.append((flambeau.is_autocast_enabled("cpu"), flambeau.mm(flambeau.ones(2, 2), flambeau.ones(2, 2)).dtype))
        with flambeau.autocast("cpu", flambeau.float16):
            ready.set()
            done.wait(10)
            seen.append(flambeau.mm(flambeau.ones(2, 2), flambeau.ones(2, 2)).dtype)

    with flambeau.autocast("cpu"):
        thread = threading.Thread(target=other)
        thread.start()
        ready.wait(10)
        seen.append(flambeau.mm(flambeau.ones(2, 2), flambeau.ones(2, 2)).dtype)
    seen.append(flambeau.mm(flambeau.ones(2, 2), flambeau.ones(2, 2)).dtype)
    done.set()
    thread.join()
    assert seen == [
        (False, flambeau.float32),
        flambeau.bfloat16,
        flambeau.float32,
        flambeau.float16,
    ]


def test_nothing_is_left_behind():
    """Regions exchange no function: those with a rule look at a list that is empty outside of them."""
    own = flambeau.mm.__globals__["body"], flambeau._ops.linalg.matmul._mm
    with flambeau.autocast("cpu"):
        assert protocol.CASTING
        assert (flambeau.mm.__globals__["body"], flambeau._ops.linalg.matmul._mm) == own
        with flambeau.autocast("cpu", dtype=flambeau.float16):
            pass
        assert protocol.CASTING
    assert not protocol.CASTING
    assert isinstance(flambeau._ops.linalg.matmul._mm, Primitive)
