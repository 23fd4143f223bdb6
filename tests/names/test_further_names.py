"""Names that few programs use, beside PyTorch's: nodes of sizes, opaque tensors, accessors, settings, registries."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome

ROOT = Path(__file__).parents[2]


def module(T: Any, name: str) -> Any:
    return importlib.import_module(f"{T.__name__}.{name}")


# ----- numbers with nodes ------------------------------------------------------------------------------------------


def _nodes(T: Any, *values: Any) -> Any:
    import sympy

    node = module(T, "fx.experimental.sym_node").SymNode
    own = T is flambeau
    env = None if own else module(T, "fx.experimental.symbolic_shapes").ShapeEnv()
    kinds = {int: sympy.Integer, float: sympy.Float, bool: lambda truth: sympy.true if truth else sympy.false}
    return [node(kinds[type(each)](each), env, type(each), each) for each in values]


@differential
def test_operations_of_nodes(T: Any) -> Any:
    a, b, half, third, true, false = _nodes(T, 7, 3, 2.5, 0.25, True, False)
    found = {
        "whole": [a.int_floordiv(b), a.pow_by_natural(b), a.sym_max(b), a.sym_min(b), a.bitwise_and(b)],
        "more": [a.bitwise_or(b), a.bitwise_xor(b), a.sym_sum([a, b, b]), a.lt(b).sym_ite(a, b), half.trunc()],
        "floats": [a.int_truediv(b), half.float_truediv(third), half.float_pow(third), a.sym_float(), a.sym_sqrt()],
        "functions": [getattr(third, f"sym_{name}")() for name in ("cos", "sin", "tan", "asin", "acos", "atan")],
        "others": [getattr(third, f"sym_{name}")() for name in ("cosh", "sinh", "tanh", "log2")],
        "truths": [true.sym_and(false), true.sym_or(false), half.is_integer(), a.sym_float().is_integer()],
    }
    return {key: [round(float(each.hint), 6) for each in nodes] for key, nodes in found.items()}, [
        type(each.hint).__name__ in ("bool", "BooleanTrue", "BooleanFalse") for each in found["truths"]
    ]


@differential
def test_questions_to_nodes(T: Any) -> Any:
    a, half, true = _nodes(T, 7, 2.5, True)
    return (
        a.maybe_as_int(), a.maybe_as_float(), half.maybe_as_float(), true.maybe_as_bool(), a.maybe_as_bool(),
        a.nested_int(), int(a.evaluate()), bool(true.expect_true("", 0)), true.guard_or_false("", 0),
        true.guard_or_true("", 0), true.statically_known_true("", 0), true.guard_size_oblivious("", 0),
        str(a.expr), a.with_shape_env(a.shape_env).hint,
    )  # fmt: skip


@differential
def test_layouts_of_nodes(T: Any) -> Any:
    first = _nodes(T, 1)[0]
    found = []
    for sizes, strides in (
        ((2, 3, 4, 5), (60, 20, 5, 1)), ((2, 3, 4, 5), (60, 1, 15, 3)), ((2, 3, 4, 5), (120, 1, 15, 3)),
        ((2, 3, 4, 5, 2), (120, 1, 30, 6, 3)), ((2, 1, 3, 3), (9, 9, 3, 1)), ((4, 4), (1, 4)), ((4, 4), (1, 1)),
    ):  # fmt: skip
        nodes = _nodes(T, *sizes), _nodes(T, *strides)
        questions = ["is_contiguous", "is_non_overlapping_and_dense", "is_non_overlapping_and_dense_indicator"]
        questions += [f"is_channels_last_{kind}_{rank}d" for kind in ("contiguous", "strides") for rank in (2, 3)]
        found.append([bool(getattr(first, name)(*nodes).hint) for name in questions])
    return found


# ----- opaque tensors ----------------------------------------------------------------------------------------------


@differential
def test_opaque_tensors(T: Any) -> Any:
    F = T.nn.functional
    x = T.linspace(-2, 2, 2 * 3 * 6 * 6).view(2, 3, 6, 6)
    opaque = x.to_mkldnn()
    weight = T.linspace(-1, 1, 4 * 3 * 3 * 3).view(4, 3, 3, 3)
    results = [
        opaque.relu(), opaque.sigmoid(), opaque.tanh(), opaque + opaque, opaque * opaque, opaque * 2.0,
        opaque.reshape(2, -1), opaque.flatten(1), opaque.transpose(1, 2), opaque.softmax(1), F.gelu(opaque),
        F.max_pool2d(opaque, 2), F.avg_pool2d(opaque, 2), F.adaptive_avg_pool2d(opaque, 2), opaque.clone(),
        F.conv2d(opaque, weight.to_mkldnn(), T.ones(4).to_mkldnn()), T.mkldnn_max_pool2d(opaque, 2),
        T.mkldnn_adaptive_avg_pool2d(opaque, 3), F.prelu(opaque, T.full((3,), 0.1).to_mkldnn()),
        T.mkldnn_max_pool3d(T.linspace(-1, 1, 128).view(1, 2, 4, 4, 4).to_mkldnn(), 2),
    ]  # fmt: skip
    out = T.zeros(2, 3, 2, 2).to_mkldnn()
    results.append(T.mkldnn_adaptive_avg_pool2d(opaque, 2, out=out))
    assert results[-1] is out
    changed = x.to_mkldnn()
    changed.relu_().add_(opaque).mul_(2)
    assert all(str(each.layout) == "torch._mkldnn" and each.is_mkldnn for each in (*results, changed))
    refused = [
        outcome(lambda: opaque.sum()), outcome(lambda: opaque + 1), outcome(lambda: opaque.numpy()),
        outcome(lambda: opaque.tolist()), outcome(lambda: opaque.untyped_storage()), outcome(lambda: opaque.data_ptr()),
        outcome(lambda: x.double().to_mkldnn()), outcome(lambda: T.mkldnn_max_pool2d(x, 2)),
        outcome(lambda: opaque.double()),
    ]  # fmt: skip
    gradients = T.mkldnn_linear_backward_weights(
        T.ones(2, 4).to_mkldnn(), T.arange(6.0).view(2, 3).to_mkldnn(), T.ones(4, 3).to_mkldnn(), True
    )
    leaf = T.arange(4.0).view(2, 2).requires_grad_()
    (leaf.to_mkldnn() * 3.0).to_dense().sum().backward()
    return [each.to_dense() for each in (*results, changed)], refused, gradients, leaf.grad, repr(T.ones(2).to_mkldnn())


@differential
def test_recurrent_layers_in_one_call(T: Any) -> Any:
    weights = [T.linspace(-1, 1, 12 * n).view(12, n) for n in (4, 3)] + [T.linspace(-1, 1, 12), T.zeros(12)]
    start = T.zeros(1, 2, 3), T.ones(1, 2, 3)
    steps = T.linspace(-1, 1, 24).view(3, 2, 4)
    return [
        T.mkldnn_rnn_layer(steps, *weights, *start, reverse, [], 2, 3, 1, True, False, False, False)[:3]
        for reverse in (False, True)
    ]


@differential(tolerance=1e-5)
def test_modules_for_opaque_tensors(T: Any) -> Any:
    convert = module(T, "utils.mkldnn").to_mkldnn
    T.manual_seed(0)
    layers = [T.nn.Conv2d(3, 4, 3, bias=False), T.nn.BatchNorm2d(4), T.nn.ReLU(), T.nn.Flatten(), T.nn.Linear(64, 2)]
    network = T.nn.Sequential(*layers, T.nn.PReLU()).eval()
    x = T.rand(2, 3, 6, 6)
    dense = network(x).detach()
    made = convert(network)
    results = made(x.to_mkldnn()).to_dense().detach()
    line = module(T, "utils.mkldnn").MkldnnLinear(T.nn.Linear(3, 2), T.float32)(T.ones(1, 3)).detach()
    volume, steps = T.nn.Conv3d(1, 1, 2), T.nn.Conv1d(2, 2, 2)
    others = [
        convert(steps)(T.ones(1, 2, 4).to_mkldnn()).to_dense().detach(),
        convert(volume)(T.ones(1, 1, 3, 3, 3).to_mkldnn()).to_dense().detach(),
    ]
    return (
        (results - dense).abs().max() < 1e-5, results, line, others, sorted(made.state_dict()), list(made.parameters()),
        outcome(lambda: convert(T.nn.BatchNorm2d(3))), outcome(lambda: convert(T.nn.Linear(1, 1), T.float64)),
    )  # fmt: skip


# ----- sparse ------------------------------------------------------------------------------------------------------


@differential
def test_half_of_every_four_on_a_cpu(T: Any) -> Any:
    sparse, x = T.sparse, T.ones(64, 64)
    classes = [sparse.SparseSemiStructuredTensorCUTLASS, sparse.SparseSemiStructuredTensorCUSPARSELT]
    return (
        outcome(lambda: sparse.to_sparse_semi_structured(x), "Only CUDA tensors are currently supported"),
        [outcome(lambda each=each: each.from_dense(x), "Only CUDA tensors") for each in classes],
        outcome(lambda: classes[0].prune_dense_static_sort(x)),
        outcome(lambda: classes[0](x.shape, None, None, None, None, None), "At least one of packed"),
        [each.BACKEND for each in classes], issubclass(classes[0], sparse.SparseSemiStructuredTensor),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:The PyTorch API of SparseSemiStructuredTensor")
def test_half_of_every_four_is_kept() -> None:
    """PyTorch keeps such matrices on GPUs alone; what is done with their parts needs none."""
    from flambeau.sparse.semi_structured import SparseSemiStructuredTensorCUTLASS as Matrix
    from flambeau.sparse.semi_structured import expanded, packed

    dense = flambeau.tensor([[1.0, 0.0, -2.0, 0.0, 0.0, 3.0, 4.0, 0.0], [5.0, 6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0]])
    kept, places = packed(dense)
    assert kept.tolist() == [[1, -2, 3, 4], [5, 6, 0, 7]]
    assert places.tolist() == [[0, 2, 1, 2], [0, 1, 0, 3]]
    assert expanded(kept, places, dense.shape).equal(dense)
    full = flambeau.tensor([[3.0, -9.0, 1.0, 4.0]])
    assert expanded(*packed(full), full.shape).tolist() == [[0, -9, 0, 4]]
    made = Matrix(dense.shape, kept, places, None, None, None)
    x = flambeau.arange(8.0)[None]
    assert flambeau.nn.functional.linear(x, made).equal(x @ dense.t())
    assert flambeau.mm(made, x.t()).equal(dense @ x.t())
    assert made.t().t().to_dense().equal(dense)
    assert made.t().to_dense().equal(dense.t())
    with pytest.raises(NotImplementedError, match="to_dense"):
        made + 1


@differential
def test_checks_of_sparse_functions(T: Any) -> Any:
    check = T.sparse.as_sparse_gradcheck(T.autograd.gradcheck)
    eye, ones = T.eye(3, dtype=T.float64), T.ones(3, 2, dtype=T.float64)
    found = []
    for masked in (False, True):
        coo, csr = eye.to_sparse().requires_grad_(), eye.to_sparse_csr().requires_grad_()
        found += [
            check(lambda x: x * 2, (coo,), masked=masked),
            check(lambda x: T.sparse.mm(x, ones), (coo,), masked=masked),
            check(lambda x: x.to_dense().sin(), (csr,), masked=masked),
            check(lambda x: x.sin(), (T.ones(2, dtype=T.float64, requires_grad=True),), masked=masked),
        ]
    return found, check.__name__ != ""


# ----- modules, optimizers, graphs ---------------------------------------------------------------------------------


@differential
def test_members_by_name(T: Any) -> Any:
    accessor = module(T, "nn.utils._named_member_accessor").NamedMemberAccessor
    T.manual_seed(0)
    network = T.nn.Sequential(T.nn.Linear(1, 1), T.nn.BatchNorm1d(1))
    found = accessor(network)
    before = found.swap_tensors_dict({"0.weight": T.nn.Parameter(T.full((1, 1), 3.0)), "1.running_mean": T.ones(1)})
    found.set_tensors(["0.bias"], [T.nn.Parameter(T.zeros(1))])
    results = [
        {name: value.detach() for name, value in before[0].items()}, before[1], network[0].weight.detach(),
        found.check_keys(["0.weight", "x"]), [name for name, _ in found.named_tensors()],
        [name for name, _ in found.named_modules()], found.get_tensor("1.running_mean"),
        found.get_submodule("1") is network[1],
    ]  # fmt: skip
    refused = [
        outcome(lambda: found.get_tensor("0.nope")), outcome(lambda: found.get_tensor("0")),
        outcome(lambda: found.get_submodule("zz")), outcome(lambda: found.set_tensor("0.weight", 3)),
        outcome(lambda: found.swap_tensor("0.q", T.zeros(1))), outcome(lambda: found.set_tensors(["a"], [1, 2])),
        outcome(lambda: found.swap_tensors_dict({"0.nope": T.zeros(1)})),
    ]  # fmt: skip
    found.del_tensor("0.bias")
    swapped = found.swap_submodule("1", T.nn.ReLU())
    return results, refused, hasattr(network[0], "bias"), type(swapped).__name__, type(network[1]).__name__


@differential
def test_other_parameters_in_an_optimizer(T: Any) -> Any:
    own, other = T.ones(2, requires_grad=True), T.zeros(2, requires_grad=True)
    optimizer = T.optim.Adam([own], lr=0.1)
    own.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0] = {key: value.clone() for key, value in state["state"][0].items()}
    other.grad = T.ones(2)
    with T.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        inside = optimizer.param_groups[0]["params"][0] is other
        optimizer.step()
    step = optimizer.state[own]["step"]
    return inside, own.detach(), other.detach(), step, state["state"][0]["step"], optimizer.param_groups[0]["lr"]


@differential
def test_optimizers_of_many_and_their_names(T: Any) -> Any:
    many = module(T, "optim._multi_tensor")
    weight = T.ones(2, requires_grad=True)
    optimizer = many.SGD([weight], lr=0.5)
    weight.sum().backward()
    optimizer.step()
    schedule = T.optim.lr_scheduler.StepLR(optimizer, 1)
    with T.optim.lr_scheduler._enable_get_lr_call(schedule):
        inside = schedule._get_lr_called_within_step
    handle = T.utils.hooks.RemovableHandle(OrderedDict())
    return (
        optimizer.defaults["foreach"], weight.detach(), isinstance(optimizer, T.optim.SGD), inside,
        schedule._get_lr_called_within_step, handle.id < T.utils.hooks.RemovableHandle.next_id,
        isinstance(T.nn.parameter.Parameter, T.nn.parameter._ParameterMeta), T.nn.Module.T_destination.__name__,
        T.fft.Tensor is T.Tensor, hasattr(T.optim.Optimizer, "OptimizerPreHook"),
        type(module(T, "optim.optimizer")._foreach_doc).__name__,
    )  # fmt: skip


@differential
def test_strides_of_gradients(T: Any) -> Any:
    found = []
    for enforced in (True, False):
        leaf = T.ones(2, 3, requires_grad=True)
        with T.autograd.enforce_grad_layout_policy(enforced):
            (leaf * T.ones(3, 2).t()).sum().backward()
        found.append(leaf.grad)
    budget = T.autograd.graph.region_activation_memory_budget
    return found, [outcome(lambda value=value: budget(value).__enter__()) for value in (0.5, -1, 2)]


@differential
def test_functions_of_nodes_and_values_inside_transforms(T: Any) -> Any:
    seen = []

    class Scale(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

    node = Scale.apply(T.ones(2, requires_grad=True)).grad_fn

    def look(x: Any) -> Any:
        seen.append(T.func.debug_unwrap(x).clone())
        return x.sum()

    T.vmap(look)(T.arange(6.0).view(2, 3))
    return node.apply_jvp(T.ones(2)), seen, T.func.debug_unwrap(T.ones(1)).shape


@differential
def test_checkpoints_in_groups(T: Any) -> Any:
    checkpoint = T.utils.checkpoint
    runs = []

    def branch(x: Any) -> Any:
        runs.append(1)
        return x.sin(), x.cos()

    x = T.ones(2, requires_grad=True)
    one, two = checkpoint.checkpoint(branch, x, use_reentrant=False)
    with checkpoint.GraphExecGroup():
        one.sum().backward(retain_graph=True)
        two.sum().backward()
    with T.autocast("cpu", T.bfloat16):
        options = checkpoint._get_autocast_kwargs("cpu")
    return len(runs), x.grad, options, T.ops.aten.detach.default in checkpoint.SAC_IGNORED_OPS


@differential
def test_how_einsum_is_handed_on(T: Any) -> Any:
    """Who overrides it sees an equation and operands one by one, however it was called."""

    class Seen(T.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__, [each if isinstance(each, str) else type(each).__name__ for each in args]

    a = T.ones(2, 2).as_subclass(Seen)
    graph = T.fx.symbolic_trace(lambda x, y: T.einsum("ij,jk->ik", (x, y))).graph
    nodes = [[str(each) for each in node.args] for node in graph.nodes if node.op == "call_function"]
    return T.einsum("ij,jk->ik", a, a), T.einsum("ij,jk->ik", [a, a]), T.einsum(a, [0, 1], a, [1, 2], [0, 2]), nodes


# ----- settings and registries -------------------------------------------------------------------------------------


@differential
def test_switches_of_files(T: Any) -> Any:
    config = module(T, "utils.serialization").config
    before = config.save.compute_crc32, config.load.mmap, config.load.mmap_flags, config.save.storage_alignment
    with config.patch("save.compute_crc32", False):
        inside = T.serialization.get_crc32_options()
    T.serialization.set_crc32_options(False)
    after = config.save.compute_crc32
    T.serialization.set_crc32_options(True)
    return before, inside, after, config.load.endianness, outcome(lambda: T.serialization.storage_to_tensor_type(None))


def test_alignment_and_mapping_of_files(tmp_path: Path) -> None:
    config = flambeau.utils.serialization.config
    with config.patch({"save.storage_alignment": 4096, "load.mmap": True}):
        flambeau.save({"x": flambeau.arange(5)}, tmp_path / "a.pt")
        reader = flambeau.PyTorchFileReader(str(tmp_path / "a.pt"))
        assert reader.get_record_offset("data/0") % 4096 == 0
        assert flambeau.load(tmp_path / "a.pt")["x"].tolist() == [0, 1, 2, 3, 4]
        with (tmp_path / "a.pt").open("rb") as file, pytest.raises(ValueError, match="file path"):
            flambeau.load(file)
    flambeau.save(flambeau.ones(2), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with flambeau.serialization._open_file_like(tmp_path / "old.pt", "rb") as file:
        assert flambeau.serialization._legacy_load(file, None, pickle).tolist() == [1, 1]


@differential
def test_ways_of_attention_that_packages_bring(T: Any) -> Any:
    attention = module(T, "nn.attention")
    log: list[str] = []

    class Handle:
        def remove(self) -> None:
            log.append("off")

    def switch_on() -> Any:
        log.append("on")
        return Handle()

    attention.register_flash_attention_impl("MINE", register_fn=switch_on)
    attention.activate_flash_attention_impl("MINE")
    current = attention.current_flash_attention_impl()
    attention.restore_flash_attention_impl()
    return (
        log, current, attention.current_flash_attention_impl(), set(attention.list_flash_attention_impls()),
        outcome(lambda: attention.activate_flash_attention_impl("nobody's"), "Unknown flash attention impl"),
    )  # fmt: skip


@differential
def test_operators_and_compilers(T: Any) -> Any:
    def double(x: Any) -> Any:
        return x * 2

    double.__annotations__ = {"x": T.Tensor, "return": T.Tensor}
    made = T.library.triton_op("further_names::double", double, mutates_args=())
    tools = module(T, "utils.cpp_extension")
    return (
        made(T.ones(2)), T.ops.further_names.double(T.ones(1)), outcome(lambda: T.library.wrap_triton(double)),
        T.ops.prims.sin(T.ones(1)), T.ops.prims.add.default(T.ones(1), T.ones(1)), T.ops.prims.rev(T.arange(3), [0]),
        T.ops.prims.erf_inv(T.full((1,), 0.5)), outcome(lambda: T.ops.prims.nope),
        outcome(lambda: T.ops.higher_order.nope),
        tools.check_compiler_is_gcc("no-such-compiler"), tools.check_compiler_ok_for_platform("no-such-compiler"),
        tools.remove_extension_h_precompiler_headers(), outcome(lambda: tools.CUDAExtension("a", ["a.cu"])),
        T.ops.higher_order.cond(T.tensor(True), lambda x: x + 1, lambda x: x - 1, (T.ones(1),)),
    )  # fmt: skip


@differential
def test_what_a_processor_can_do(T: Any) -> Any:
    found = T.cpu.get_capabilities()
    names = ("avx", "avx2", "avx512_f", "fma3", "f16c") if found["architecture"] == "x86_64" else ("architecture",)
    return {name: found[name] for name in names}, found["architecture"], outcome(lambda: found.__setitem__("avx", 1))


@differential
def test_names_of_the_script_compiler(T: Any) -> Any:
    settings = T.BenchmarkConfig()
    closed = ("ArgumentSpec", "Capsule", "CompleteArgumentSpec", "DeepCopyMemoTable", "IODescriptor", "ScriptClass")
    return (
        settings.num_iters, settings.num_warmup_iters, settings.num_calling_threads, settings.profiler_output_path,
        [outcome(lambda name=name: getattr(T, name)(), "No constructor defined") for name in closed],
    )  # fmt: skip


def test_views_of_modules() -> None:
    layer = flambeau.nn.BatchNorm1d(2)
    parameters, buffers = flambeau.ParameterDict(layer), flambeau.BufferDict(layer)
    assert [name for name, _ in parameters.items()] == ["weight", "bias"]
    assert buffers.contains("running_mean")
    assert not buffers.contains("weight")
    buffers.setattr("running_mean", flambeau.ones(2))
    assert layer.running_mean is buffers.getattr("running_mean")
    assert [name for name, _ in flambeau.ModuleDict(flambeau.nn.Sequential(layer)).items()] == ["0"]


@differential
def test_plans_of_transforms_without_a_gpu(T: Any) -> Any:
    cuda = T.backends.cuda
    if T.cuda.is_available():
        return None
    cache = cuda.cuFFTPlanCache(0)
    return (
        outcome(lambda: cache.size, "Cannot access cuFFT plan cache"), outcome(lambda: cache.max_size),
        outcome(lambda: cache.clear()), outcome(lambda: cuda.cufft_plan_cache[0], "expected 0 <= device index < 0"),
        outcome(lambda: cuda.cufft_plan_cache.size), outcome(lambda: setattr(cache, "size", 3)),
    )  # fmt: skip


_OWN_DEVICE = """
import sys
T = __import__(sys.argv[1])
def outcome(action):
    try:
        return repr(action())
    except Exception as error:
        return type(error).__name__
before, x, found = T.device("privateuseone", 1), T.ones(2), []
utils = T.utils
found.append(outcome(lambda: utils.rename_privateuse1_backend("cuda")))
found.append(outcome(lambda: utils.rename_privateuse1_backend(3)))
utils.rename_privateuse1_backend("mine")
utils.rename_privateuse1_backend("mine")
found.append(outcome(lambda: utils.rename_privateuse1_backend("other")))
found += [str(before), T.device("mine:1") == before, str(T.device("privateuseone"))]
found.append(T._C._get_privateuse1_backend_name())
utils.generate_methods_for_privateuse1_backend(for_storage=True)
found.append(outcome(lambda: utils.generate_methods_for_privateuse1_backend()))
packed = T.nn.utils.rnn.pack_sequence([x])
found += [x.is_mine, x.untyped_storage().is_mine, packed.is_mine, hasattr(T.nn.Linear(1, 1), "mine")]
found.append(outcome(lambda: x.mine("cpu")))
print(found)
"""


def test_a_device_of_ones_own() -> None:
    """A name is given once in a process."""
    from tests.support.oracle import pytorch

    texts = [
        subprocess.run(
            [sys.executable, "-c", _OWN_DEVICE, name], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
        for name in ("flambeau", *(["torch"] if pytorch is not None else []))
    ]
    assert "mine:1" in texts[0]
    assert len(set(texts)) == 1
