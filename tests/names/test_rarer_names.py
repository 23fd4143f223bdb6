"""More names that few programs use, beside PyTorch's."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome, warned


def module(T: Any, name: str) -> Any:
    return importlib.import_module(f"{T.__name__}.{name}")


@differential
def test_numbers_that_vary(T: Any) -> Any:
    made = module(T, "fx.experimental.sym_node").DynamicInt(5)
    results = [
        made, made + 1, 1 + made, made * 2, made - 1, 7 - made, made // 2, made % 3, made**2, -made, abs(made),
        made & 4, made | 8, made << 1, made / 2, made == 5, made < 6, divmod(made, 2), bool(made), hash(made),
        float(made),
    ]  # fmt: skip
    return [repr(each) for each in results], T.ones(made).shape, isinstance(made, int), repr(T.sym_max(made, 3))


@differential
def test_symbols_ask_their_nodes(T: Any) -> Any:
    class Node:
        """A node that writes down what it is asked for."""

        def __init__(self, text: str, value: Any) -> None:
            self.text, self.value = text, value

        def _graph_repr(self) -> str:
            return self.text

        def is_constant(self) -> bool:
            return False

        def is_int(self) -> bool:
            return type(self.value) is int

        def is_bool(self) -> bool:
            return type(self.value) is bool

        def is_float(self) -> bool:
            return type(self.value) is float

        def is_nested_int(self) -> bool:
            return False

        def int_(self) -> int:
            return int(self.value)

        def bool_(self) -> bool:
            return bool(self.value)

        def guard_float(self, file: str, line: int) -> float:
            return float(self.value)

        def wrap_int(self, number: int) -> Node:
            return Node(str(number), number)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)

            def asked(other: Node) -> Node:
                value = {
                    "add": self.value + other.value,
                    "mul": self.value * other.value,
                    "lt": self.value < other.value,
                }
                return Node(f"{name}({self.text}, {other.text})", value[name])

            return asked

    made = T.SymInt(Node("s", 4))
    longer = (made + 1) * made
    return (
        [repr(each) for each in (made, longer, 2 + made, made < 9)],
        [type(each).__name__ for each in (longer, made < 9)],
        (int(longer), bool(made < 9), made.as_integer_ratio()[1], made.conjugate() is made, range(9)[made]),
        (T.SymFloat(Node("f", 2.5)).hex(), T.SymFloat(Node("f", 2.5)).as_integer_ratio()),
        outcome(lambda: hash(made), "unhashable type"),
        T.sym_int(made) is made,
    )


def test_nodes_of_numbers() -> None:
    nodes = module(flambeau, "fx.experimental.sym_node")
    size = flambeau.SymInt(nodes.SymNode("s0", None, int, 4))
    assert int((size + 2) // 3) == 2
    assert repr(size * 2) == "mul('s0', 2)"
    assert bool(size == 4)
    assert float(size / 8) == 0.5
    assert isinstance(size / 8, flambeau.SymFloat)
    assert isinstance(size > 3, flambeau.SymBool)
    assert flambeau.ones(3, size).shape == (3, 4)
    assert bool(flambeau.sym_not(size < 3))
    assert nodes.method_to_operator("add")(2, 3) == nodes.magic_methods["add"](2, 3) == 5
    unknown = nodes.SymNode("u0", None, int, None)
    assert not unknown.has_hint()
    with pytest.raises(RuntimeError, match="u0"):
        int(flambeau.SymInt(unknown))


@differential
def test_older_names_of_autograd(T: Any) -> Any:
    function = module(T, "autograd.function")
    x = T.ones(2, requires_grad=True)
    edge = T.autograd.graph.get_gradient_edge(x * 2)

    base: Any = T.autograd.Function

    class Doubling(base):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            ctx.mark_shared_storage((value, value))
            return value * 2

    graph = T.autograd.graph
    return (
        [issubclass(T.autograd.Function, each) for each in (function._SingleLevelFunction, object)],
        [issubclass(each, T.autograd.Function) for each in (function.InplaceFunction, function.NestedIOFunction)],
        warned(lambda: function.InplaceFunction(True).inplace),
        warned(lambda: Doubling.apply(x), "`mark_shared_storage` is deprecated"),
        isinstance(x, T.autograd.Variable),
        type(T.autograd.Variable).__name__,
        (edge.ownership_token, edge._fields),
        graph.set_warn_on_accumulate_grad_stream_mismatch(True),
        graph.set_override_stale_capture_stream(False),
    )


def _gradcheck(T: Any) -> Any:
    found = T.autograd.gradcheck  # the function stands in the place of its module, or the module can be called
    return getattr(found, "__globals__", None) or vars(found)


@differential(tolerance=1e-5)
def test_older_jacobians(T: Any) -> Any:
    names = _gradcheck(T)
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)

    def function(inputs: Any) -> Any:
        return T.stack([inputs[0].prod(), inputs[0].sum(), inputs[0][0] * 3])

    return (
        warned(lambda: names["get_numerical_jacobian"](function, (x,)), "not meant to be exposed"),
        warned(lambda: names["get_analytical_jacobian"]((x,), function((x,))), "not meant to be exposed"),
        names["get_numerical_jacobian_wrt_specific_input"](lambda y: y * 2, 0, (x,), (x * 2,), 1e-6),
    )


@differential
def test_rearrange(T: Any) -> Any:
    rearrange = T.func.rearrange
    x = T.arange(24).reshape(2, 3, 4)
    return (
        rearrange(x, "a b c -> (a b) c"),
        rearrange(x, "a b (c d) -> d (c a) b", c=2),
        rearrange(x, "... c -> c ..."),
        rearrange(x, "a ... -> (...) a"),
        rearrange([T.ones(2), T.zeros(2)], "a b -> b a"),
        rearrange(T.ones(6, 1), "a 1 -> a"),
        outcome(lambda: rearrange(x, "a b c -> a b"), "only on one side"),
        outcome(lambda: rearrange(x, "a b -> b a"), "Number of dimensions in pattern"),
    )


@differential
def test_settings_of_backends(T: Any) -> Any:
    backends = T.backends
    classes = [type(getattr(backends, name)).__name__ for name in ("cudnn", "mkldnn", "opt_einsum")]
    rnn = module(T, "backends.cudnn.rnn")
    before = backends.cudnn.benchmark
    with backends.cudnn.flags(enabled=True, benchmark=not before, deterministic=True):
        inside = backends.cudnn.benchmark != before, backends.cudnn.deterministic

    class Holder:
        value = 3
        prop = backends.ContextProp(lambda: Holder.value, lambda new: setattr(Holder, "value", new))

    holder = Holder()
    holder.prop = 4
    wrapper = backends.PropModule(importlib.import_module("math"), "wrapper")
    return (
        classes,
        (inside, backends.cudnn.benchmark == before, holder.prop, wrapper.pi, wrapper.__name__),
        (rnn.Unserializable(3).get(), rnn.Unserializable(3).__getstate__()),
        isinstance(backends.cudnn, backends.PropModule),
        (backends.quantized.engine, backends.quantized.supported_engines),
        outcome(lambda: setattr(backends.quantized, "engine", "none of them")),
        type(backends.cuda.matmul).__name__,
        issubclass(backends.GenericModule, backends.PropModule),
    )


def test_settings_can_be_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau.backends import _modules

    monkeypatch.setattr(_modules._Flags, "frozen", False)
    flambeau.backends.disable_global_flags()
    assert flambeau.backends.flags_frozen()
    with pytest.raises(RuntimeError, match="after disable_global_flags"):
        flambeau.backends.cudnn.benchmark = True
    with flambeau.backends.cudnn.flags(benchmark=True):
        assert flambeau.backends.cudnn.benchmark
    assert not flambeau.backends.cudnn.benchmark


def test_kinds_of_recurrent_layers() -> None:
    rnn = module(flambeau, "backends.cudnn.rnn")
    assert [rnn.get_cudnn_mode(each) for each in ("RNN_RELU", "RNN_TANH", "LSTM", "GRU", 7)] == [0, 1, 2, 3, 7]
    with pytest.raises(ValueError, match="Unknown mode"):
        rnn.get_cudnn_mode("none")


def test_questions_about_attention() -> None:
    params = flambeau.backends.cuda.SDPAParams(*[flambeau.ones(1)] * 3, None, 0.0, True, False)
    assert params.is_causal
    assert not flambeau.backends.cuda.can_use_flash_attention(params)


@differential
def test_queues_of_the_processor(T: Any) -> Any:
    stream, event = T.Stream("cpu"), T.Event("cpu")
    keys = T.DispatchKeySet(T.DispatchKey.CPU) | T.DispatchKeySet(T.DispatchKey.AutogradCPU)
    return (
        (repr(stream), stream.stream_id, stream.device_index, stream.device_type, str(stream.device)),
        (stream.query(), stream.is_capturing() if T is flambeau else False, event.event_id, str(event.device)),
        keys.highestPriorityTypeId().name,
        T.DispatchKeySet.from_raw_repr(keys.raw_repr()) == keys,
    )


def test_times_between_marks() -> None:
    first, second = flambeau.Event(), flambeau.Event()
    with pytest.raises(RuntimeError, match="must be recorded"):
        first.elapsed_time(second)
    first.record()
    second.record()
    assert 0 <= first.elapsed_time(second) < 10_000
    with pytest.raises(RuntimeError, match="shared between processes"):
        first.ipc_handle()


@differential(tolerance=1e-4)
def test_older_quantized_functions(T: Any) -> Any:
    T.manual_seed(0)
    weight, x = T.randn(8, 4), T.randn(3, 4)
    weight[:, 1::2] = 0  # PyTorch's sums of pairs of products of 8 bits may overflow
    weight[:2, 0] = T.tensor([3.0, -3.0])  # so that the code of zero is zero or next to it
    codes, offsets, scale, zero_point = T.fbgemm_linear_quantize_weight(weight)
    packed = T.fbgemm_pack_quantized_matrix(codes)
    half = T.fbgemm_pack_gemm_matrix_fp16(weight)
    bias = T.randn(8)
    results = [
        codes, offsets, scale, zero_point,
        T.fbgemm_linear_int8_weight(x, codes, packed, offsets, scale, zero_point, bias),
        T.fbgemm_linear_int8_weight_fp32_activation(x, codes, packed, offsets, scale, zero_point, bias),
        T.fbgemm_linear_fp16_weight(x, half, bias),
        T.fbgemm_linear_fp16_weight_fp32_activation(x, half, bias),
    ]  # fmt: skip
    inner = T.randn(8, 2)
    inner[:, 1] = 0
    inner[:2, 0] = T.tensor([3.0, -3.0])
    state, start = T.fbgemm_linear_quantize_weight(inner), T.randn(3, 2)

    def cell(name: str, hx: Any, rows: int) -> Any:
        parts = [(each[0][:rows].contiguous(), each[1][:rows].contiguous()) for each in ((codes, offsets), state)]
        packs = [T.fbgemm_pack_quantized_matrix(each[0]) for each in parts]
        return getattr(T, name)(
            x, hx, parts[0][0], parts[1][0], bias[:rows], bias[:rows], *packs, parts[0][1], parts[1][1], scale,
            state[2], zero_point, state[3],
        )  # fmt: skip

    results += [cell("quantized_lstm_cell", [start, start], 8), cell("quantized_gru_cell", start, 6)]
    results += [cell(f"quantized_rnn_{name}_cell", start, 2) for name in ("relu", "tanh")]
    image = T.quantize_per_tensor(T.randn(1, 3, 4, 4), 0.05, 64, T.quint8)
    ones = T.ones(3)
    normal = T.quantized_batch_norm(image, ones, ones, ones, ones * 2, 1e-5, 0.1, 3)
    pooled = [
        T.quantized_max_pool1d(image[0], [2]),
        T.quantized_max_pool2d(image, [2, 2]),
        T.quantized_max_pool3d(image[None], [1, 2, 2]),
    ]
    return results, [(each.int_repr().contiguous(), each.q_scale(), each.q_zero_point()) for each in (normal, *pooled)]


def test_layers_with_packed_weights() -> None:
    kinds = flambeau.ao.nn.quantized.dynamic
    x, state = flambeau.randn(4, 3, 5), flambeau.zeros(2, 3, 6)
    lstm, gru = kinds.LSTM(5, 6, 2), kinds.GRU(5, 6, 2)
    params = [[each.param for each in layer._all_weight_values] for layer in (lstm, gru)]
    result, hidden, cell = flambeau.quantized_lstm(x, [state, state], params[0], True, 2, 0.0, False, False, False)
    expected, (last, inner) = lstm(x)
    assert result.equal(expected)
    assert hidden.equal(last)
    assert cell.equal(inner)
    result, hidden = flambeau.quantized_gru(x, state, params[1], True, 2, 0.0, False, False, False)
    assert result.equal(gru(x)[0])
    sizes = flambeau.tensor([3, 3, 3, 3])
    packed = flambeau.quantized_gru(x.reshape(12, 5), sizes, state, params[1], True, 2, 0.0, False, False)
    assert packed[0].shape == (12, 6)
    assert packed[1].shape == hidden.shape


@differential(tolerance=1e-4)
def test_convolution_by_another_name(T: Any) -> Any:
    T.manual_seed(0)
    x, weight, bias = T.randn(1, 3, 5, 5), T.randn(4, 3, 3, 3), T.randn(4)
    return T.mkldnn_convolution(x, weight, bias, [1, 1], [2, 2], [1, 1], 1)


def test_sequences_of_different_lengths() -> None:
    varlen = module(flambeau, "nn.attention.varlen")
    flambeau.manual_seed(0)
    attention = flambeau.nn.functional.scaled_dot_product_attention
    q, k, v = (flambeau.randn(7, heads, 8) for heads in (4, 2, 2))
    ends = flambeau.tensor([0, 3, 7], dtype=flambeau.int32)
    found, sums = varlen.varlen_attn(
        q, k, v, ends, ends, 4, 4, enable_gqa=True, window_size=(-1, 0), return_aux=varlen.AuxRequest(lse=True)
    )
    for start, end in ((0, 3), (3, 7)):
        parts = [each[start:end].transpose(0, 1).unsqueeze(0) for each in (q, k, v)]
        expected = attention(*parts, is_causal=True, enable_gqa=True)[0].transpose(0, 1)
        assert flambeau.allclose(found[start:end], expected, atol=1e-6)
    assert sums.shape == (4, 7)
    pool = k.new_zeros(4, 2, 2, 8)
    pool[[2, 0]] = k[:4].reshape(2, 2, 2, 8)
    table = flambeau.tensor([[2, 0]], dtype=flambeau.int32)
    used = flambeau.tensor([3], dtype=flambeau.int32)
    paged = varlen.varlen_attn(
        q[:3], pool, pool, ends[:2], None, 3, 3, enable_gqa=True, seqused_k=used, block_table=table
    )
    whole = varlen.varlen_attn(q[:3], k[:3], k[:3], ends[:2], ends[:2], 3, 3, enable_gqa=True)
    assert flambeau.allclose(paged, whole, atol=1e-6)
    out = flambeau.empty(3, 4, 8)
    assert varlen.varlen_attn_out(out, q[:3], k[:3], k[:3], ends[:2], ends[:2], 3, 3, enable_gqa=True) is out
    with pytest.raises(ValueError, match="enable_gqa"):
        varlen.varlen_attn(q, k, v, ends, ends, 4, 4)


@differential(tolerance=1e-2)
def test_products_with_scales(T: Any) -> Any:
    functional = T.nn.functional
    left = T.ones(4, 16).to(T.float8_e4m3fn)
    right = T.arange(16 * 8.0).reshape(8, 16).div(64).to(T.float8_e4m3fn).t()
    scales = T.tensor(2.0), T.tensor(0.5)
    whole = functional.ScalingType.TensorWise
    return (
        functional.scaled_mm(left, right, scales[0], whole, scales[1], whole, output_dtype=T.float32),
        [name for name in dir(functional.ScalingType) if "Wise" in name],
        int(functional.SwizzleType.SWIZZLE_32_4_4.value),
    )


def test_modules_of_another_library() -> None:
    cpp = module(flambeau, "nn.cpp")

    class Foreign:
        """What a module of C++ looks like."""

        def __init__(self) -> None:
            self._parameters = {"weight": flambeau.ones(2, requires_grad=True)}
            self._buffers: dict[str, Any] = {}
            self._modules: dict[str, Any] = {}
            self.training = True

        def train(self, mode: bool) -> None:
            self.training = mode

        def forward(self, x: Any) -> Any:
            return x * self._parameters["weight"]

    foreign = Foreign()
    made = cpp.ModuleWrapper(foreign)
    assert made(flambeau.ones(2)).tolist() == [1.0, 1.0]
    assert [name for name, _ in made.named_parameters()] == ["weight"]
    made.training = False
    assert not foreign.training
    assert made.double() is made
    assert foreign._parameters["weight"].dtype is flambeau.float64
    names = cpp.OrderedDictWrapper(foreign, "_parameters")
    assert list(names) == list(names.keys()) == ["weight"]
    assert len(names) == 1
    assert "weight" in names
    assert module(flambeau, "nn.backends.thnn")._get_thnn_function_backend() is None


@differential
def test_checkpoints_that_keep_some_results(T: Any) -> Any:
    checkpoint = module(T, "utils.checkpoint")
    ran: list[str] = []

    def policy(context: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        name = str(func).split(".")[1]
        ran.append(f"{name} {context.is_recompute}")
        kept = name in ("mm", "sin")
        return checkpoint.CheckpointPolicy.MUST_SAVE if kept else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    def function(x: Any, y: Any) -> Any:
        return (x @ y).sin().exp()

    x, y = T.arange(4.0).reshape(2, 2).requires_grad_(), T.ones(2, 2, requires_grad=True)
    contexts = lambda: checkpoint.create_selective_checkpoint_contexts(policy)  # noqa: E731
    result = checkpoint.checkpoint(function, x, y, use_reentrant=False, context_fn=contexts)
    result.sum().backward()
    plain = function(x, y).sum()
    listed = lambda: checkpoint.create_selective_checkpoint_contexts([T.ops.aten.mm.default])  # noqa: E731
    again = checkpoint.checkpoint(function, x, y, use_reentrant=False, context_fn=listed)
    return (
        (result, x.grad, y.grad, plain.detach()),
        [each for each in ran if each.split()[0] in ("mm", "sin", "exp")],
        T.autograd.grad(again.sum(), x),
        outcome(lambda: checkpoint.create_selective_checkpoint_contexts(3), "must be either a function or a list"),
    )


def test_log_of_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    debug_log = module(flambeau, "utils.debug_log")
    x, y = flambeau.ones(4, requires_grad=True), flambeau.ones(1, requires_grad=True)
    z = x * 2
    said: list[str] = []
    logger = logging.getLogger(debug_log.__name__)
    monkeypatch.setattr(logger, "info", lambda text, *values: said.append(text % values))
    debug_log.debug_grad_log(z, y, flambeau.ones(1))
    (z.sum() + y * 3).sum().backward()
    assert said == ["[rank 0][bwd] t0_grad_norm=2.000000 t1_grad_norm=3.000000"]


def test_many_calls() -> None:
    benchmark = flambeau.utils.ThroughputBenchmark(flambeau.nn.Linear(2, 3))
    with pytest.raises(RuntimeError, match="add_input"):
        benchmark.benchmark()
    benchmark.add_input(flambeau.ones(1, 2))
    assert benchmark.run_once(flambeau.ones(4, 2)).shape == (4, 3)
    stats = benchmark.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=6)
    assert stats.num_iters == 6
    assert stats.latency_avg_ms > 0
    assert stats.iters_per_second * stats.total_time_seconds == pytest.approx(6)
    assert "Total number of iterations: 6" in str(stats)


@differential
def test_counts_of_instructions(T: Any) -> Any:
    benchmark = module(T, "utils.benchmark")

    def counts(*pairs: tuple[int, str]) -> Any:
        return benchmark.FunctionCounts(tuple(benchmark.FunctionCount(*each) for each in pairs), inclusive=False)

    first, second = counts((9, "f"), (4, "g"), (1, "dictobject.c:lookdict_unicode")), counts((5, "f"), (7, "h"))
    marked = benchmark.CopyIfCallgrind(3, setup="import math")
    return (
        [list(each) for each in (first + second, first - second, first.filter(lambda name: name == "g"))],
        list(first.transform(lambda name: "all")),
        (first.sum(), len(first), list(first[:1]), list(first.denoise())),
        (marked.value, marked.setup, marked.serialization.name),
        benchmark.CopyIfCallgrind.unwrap_all({"a": marked, "b": 3}),
        outcome(lambda: benchmark.CopyIfCallgrind(object()), "Unsupported type"),
    )


def test_counts_of_statements() -> None:
    benchmark = module(flambeau, "utils.benchmark")

    def stats(*pairs: tuple[int, str]) -> Any:
        counts = benchmark.FunctionCounts(tuple(benchmark.FunctionCount(*each) for each in pairs), inclusive=False)
        spec = benchmark.TaskSpec(stmt="x + 1", setup="pass")
        return benchmark.CallgrindStats(spec, 100, True, counts, counts, counts, counts, None)

    first, second = stats((10, "/lib/site-packages/torch/a.py:f"), (3, "g")), stats((4, "g"))
    assert first.counts() == 13
    assert [tuple(each) for each in first.delta(second)] == [(10, "/lib/site-packages/torch/a.py:f"), (-1, "g")]
    assert first.as_standardized().stats()[0].function == "torch/a.py:f"
    assert "Total: 13" in repr(first.stats(inclusive=True))


def test_random_sparse_inputs() -> None:
    benchmark = module(flambeau, "utils.benchmark")
    parameters = [
        benchmark.FuzzedParameter("n", minval=4, maxval=9, distribution="uniform"),
        benchmark.FuzzedParameter("density", distribution={0.5: 1.0}),
        benchmark.FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}),
    ]
    tensors = [benchmark.FuzzedSparseTensor("x", ("n", "n"), density="density", coalesced="coalesced")]
    fuzzer = benchmark.Fuzzer(parameters, tensors, seed=0)
    for made, about, values in fuzzer.take(4):
        assert made["x"].is_sparse
        assert made["x"].shape == (values["n"], values["n"])
        assert about["x"]["is_coalesced"] == made["x"].is_coalesced()
        assert made["x"]._nnz() <= values["n"] ** 2 // 2
