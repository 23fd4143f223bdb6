"""Namespaces of PyTorch beside the package itself: jit, compile, futures, overrides, hub, testing, ..."""

from __future__ import annotations

import importlib
import pickle
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


@differential
def test_futures(torch: Any) -> Any:
    future = torch.futures.Future()
    doubled = future.then(lambda done: done.value() * 2)
    failing = doubled.then(lambda done: 1 / 0)
    observed = [future.done(), doubled.done()]
    future.set_result(21)
    other = torch.futures.Future()
    collected = torch.futures.collect_all([future, other])
    observed += [collected.done()]
    other.set_exception(ValueError("no"))
    return (
        observed,
        doubled.wait(),
        outcome(failing.wait),
        collected.done(),
        outcome(other.wait, "no"),
        torch.futures.wait_all([future, doubled]),
        outcome(lambda: future.set_result(1)),
    )


def test_scripted_code_is_python() -> None:
    jit = flambeau.jit

    @jit.script
    def double(x: Any) -> Any:
        return x * 2 if not jit.is_scripting() else None

    class Layer(jit.ScriptModule):
        @jit.script_method
        def forward(self, x: Any) -> Any:
            return double(x)

        @jit.ignore
        def ignored(self) -> int:
            return 1

        @jit.unused
        def unused(self) -> int:
            return 2

        @jit.export
        def exported(self) -> int:
            return 3

    layer = Layer()
    assert layer(flambeau.ones(1)).item() == 2
    assert (layer.ignored(), layer.unused(), layer.exported()) == (1, 2, 3)
    assert jit.trace(double, flambeau.ones(1))(flambeau.ones(2)).tolist() == [2.0, 2.0]
    assert jit.wait(jit.fork(double, 4)) == 8
    assert jit.annotate(list, [1]) == [1]
    assert jit.isinstance([1], list[int])
    assert not jit.isinstance([1], list[str])
    with pytest.raises(RuntimeError, match=r"jit\.save writes modules of TorchScript"):
        jit.save(3, "file")


def test_what_compile_gives() -> None:
    model = flambeau.compile(flambeau.nn.Linear(2, 3))
    function = flambeau.compile(lambda x: x + 1)
    decorated = flambeau.compile(fullgraph=True)(function)
    assert list(model.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert model(flambeau.ones(1, 2)).shape == (1, 3)
    assert model.in_features == 2
    assert decorated(flambeau.ones(1)).item() == 2
    assert not flambeau.compiler.is_compiling()
    model.eval()
    assert not model._orig_mod.training


@differential
def test_the_wrapper_of_a_compiled_module_is_pytorchs(torch: Any) -> Any:
    torch.manual_seed(0)
    model = torch.compile(torch.nn.Linear(2, 2), backend="eager")
    return list(model.state_dict()), type(model).__name__, model.out_features, len(list(model.parameters()))


@differential
def test_functions_that_heed_overrides(torch: Any) -> Any:
    overrides = torch.overrides

    class Loud:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__, len(types)

    def double(x: Any) -> Any:
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(double, (x,), x)
        return x * 2

    @overrides.wrap_torch_function(lambda x: (x,))
    def triple(x: Any) -> Any:
        return x * 3

    return (
        double(Loud()),
        double(2),
        triple(Loud()),
        triple(2),
        overrides.is_tensor_like(Loud()),
        overrides.is_tensor_like(torch.ones(1)),
        overrides.is_tensor_like(3),
        overrides.resolve_name(torch.add),
        overrides.resolve_name(torch.nn.functional.relu),
        overrides.is_tensor_method_or_property(torch.Tensor.add),
        torch.add in overrides.get_testing_overrides(),
        torch.set_default_dtype in overrides.get_ignored_functions(),
    )


def test_every_listed_function_heeds_overrides() -> None:
    class Loud:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return -1

    functions = flambeau.overrides.get_overridable_functions()
    assert len(functions[flambeau]) > 500
    assert flambeau.add(Loud(), 1) == -1
    assert flambeau.overrides.get_testing_overrides()[flambeau.add](1, 2) == -1


@differential
def test_models_from_a_folder(torch: Any) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        body = "def tiny(width=2):\n    '''A layer.'''\n    return torch.nn.Linear(width, 1)\n"
        text = f"import {torch.__name__} as torch\n\n{body}"
        Path(folder, "hubconf.py").write_text(text, encoding="utf-8")
        model = torch.hub.load(folder, "tiny", source="local", width=3)
        weights = Path(folder, "weights.pt")
        torch.save(model.state_dict(), weights)
        loaded = torch.hub.load_state_dict_from_url(weights.as_uri(), model_dir=f"{folder}/kept", progress=False)
        return (
            model.in_features,
            "tiny" in torch.hub.list(folder, source="local") if torch is flambeau else True,
            torch.hub.help(folder, "tiny", source="local") if torch is flambeau else "A layer.",
            list(loaded),
            Path(folder, "kept", "weights.pt").exists(),
            outcome(lambda: torch.hub.load(folder, "absent", source="local"), "Cannot find callable absent"),
            outcome(lambda: torch.hub.load(folder, "tiny", source="moon"), "Unknown source"),
        )


@differential
def test_numbers_for_tests(torch: Any) -> Any:
    make = torch.testing.make_tensor
    observed = []
    for name in ("bool", "uint8", "int8", "int64", "float32", "float16", "complex64", "float8_e4m3fn"):
        dtype = getattr(torch, name)
        torch.manual_seed(0)
        observed += [make(2, 3, dtype=dtype, device="cpu").to(torch.complex64 if dtype.is_complex else torch.float32)]
        apart = make(3, 4, dtype=dtype, device="cpu", noncontiguous=True)
        observed += [tuple(apart.stride()), make((2,), dtype=dtype, device="cpu", low=0, high=2).tolist()]
    return (
        observed,
        outcome(lambda: make(2, dtype=torch.float32, device="cpu", low=3, high=1), "`low` must be less than `high`"),
        outcome(lambda: make(2, dtype=torch.int64, device="cpu", requires_grad=True), "is not supported for boolean"),
        outcome(lambda: make(2, dtype=torch.uint8, device="cpu", low=-9, high=-2), "only supports"),
    )


@differential(tolerance=1e-5)
def test_flexible_attention(torch: Any) -> Any:
    flex = module(torch, "nn.attention.flex_attention")
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 20, 8) for _ in range(3))
    few_k, few_v = (torch.randn(2, 2, 20, 8) for _ in range(2))
    slopes = torch.randn(4)

    def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return q >= kv

    def near(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (q - kv).abs() <= 3

    def sloped(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return score + slopes[h] * (q - kv)

    both = flex.create_block_mask(flex.and_masks(causal, near), None, None, 20, 20, device="cpu", BLOCK_SIZE=4)
    either = flex.create_block_mask(flex.or_masks(causal, near), 2, 4, 20, 20, device="cpu", BLOCK_SIZE=(8, 4))
    return (
        flex.flex_attention(q, k, v, score_mod=sloped, block_mask=both),
        flex.flex_attention(q, k, v, block_mask=either),
        flex.flex_attention(q, few_k, few_v, enable_gqa=True, scale=0.3),
        flex.flex_attention(q, k, v, return_lse=True),
        [both.shape, both.sparsity(), both.kv_num_blocks, both.kv_indices, both.full_kv_num_blocks, both.q_indices],
        [either.shape, either.to_dense(), either.full_kv_indices],
        flex.create_mask(causal, None, None, 3, 4, device="cpu"),
        outcome(lambda: flex.flex_attention(q, few_k, few_v), "same number of heads"),
    )


def test_flexible_attention_is_attention_and_has_derivatives() -> None:
    from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention

    flambeau.manual_seed(0)
    inputs = [flambeau.randn(1, 2, 6, 4, dtype=flambeau.float64, requires_grad=True) for _ in range(3)]
    mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 6, 6, BLOCK_SIZE=2)
    expected = flambeau.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
    flambeau.testing.assert_close(flex_attention(*inputs, block_mask=mask), expected)
    assert flambeau.autograd.gradcheck(lambda *parts: flex_attention(*parts, block_mask=mask), inputs)


@differential(tolerance=1e-5)
def test_ops_and_gradients_by_other_names(torch: Any) -> Any:
    gradients = module(torch, "nn.grad")
    aten = torch.ops.aten
    torch.manual_seed(0)
    x, weight, grad = torch.randn(2, 4, 9, 9), torch.randn(6, 2, 3, 3), torch.randn(2, 6, 5, 5)
    return (
        gradients.conv2d_input(x.shape, weight, grad, stride=2, padding=1, groups=2),
        gradients.conv2d_weight(x, weight.shape, grad, stride=2, padding=1, groups=2),
        aten.convolution_backward(grad, x, weight, [6], [2, 2], [1, 1], [1, 1], False, [0, 0], 2, [True, True, True]),
        aten.add.Tensor(x, x, alpha=2),
        aten.sort.stable(torch.tensor([3, 1, 2]), stable=True),
        aten._to_copy(torch.ones(2), dtype=torch.float64),
        [str(aten.add), str(aten.add.Tensor), aten.add.Tensor.name(), aten.mm.default.name()],
        outcome(lambda: aten.add.nothing, "no overload name"),
    )


@differential
def test_small_helpers(torch: Any) -> Any:
    utils = module(torch, "_utils")
    flat = utils._flatten_dense_tensors([torch.ones(2), torch.zeros(1, 2)])
    functional = torch.nn.functional
    weak = module(torch, "utils.weak")
    key = torch.ones(1)
    table = weak.WeakIdKeyDictionary()
    table[key] = 3
    return (
        flat,
        utils._unflatten_dense_tensors(flat, [torch.ones(2), torch.zeros(1, 2)]),
        [len(each) for each in utils._take_tensors([torch.ones(2)] * 5, 16)],
        functional._canonical_mask(torch.tensor([True, False]), "mask", None, "", torch.float32),
        functional._in_projection_packed(*[torch.ones(1, 2)] * 3, torch.ones(6, 2)),
        functional._mha_shape_check(torch.ones(2, 3, 4), torch.ones(2, 3, 4), torch.ones(2, 3, 4), None, None, 2),
        outcome(lambda: functional._verify_batch_size([1, 3, 1]), "Expected more than 1 value per channel"),
        (table[key], key in table, len(table)),
        list(module(torch, "_prims_common").make_contiguous_strides_for((2, 3, 4))),
        [action.name for action in map(torch.profiler.schedule(wait=1, warmup=1, active=2, skip_first=1), range(6))],
        module(torch, "_jit_internal").boolean_dispatch("a", 0, False, lambda a: 1, lambda a: 2, "m", "f")(True),
    )


def test_tensors_change_places() -> None:
    @differential
    def scenario(torch: Any) -> Any:
        first, second = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(3))
        second.note = "moves"
        torch.utils.swap_tensors(first, second)
        return first, second, first.note, hasattr(second, "note")

    scenario()


def test_errors_cross_processes() -> None:
    @differential
    def scenario(torch: Any) -> Any:
        wrapper = module(torch, "_utils").ExceptionWrapper
        try:
            raise KeyError("lost")
        except KeyError:
            caught = wrapper(where="in a worker")
        return outcome(pickle.loads(pickle.dumps(caught)).reraise, "Caught KeyError in a worker", "lost")

    scenario()


@differential
def test_parameters_that_are_replaced_or_swapped(torch: Any) -> Any:
    future = module(torch, "__future__")
    observed = []
    for overwrite, swap in ((False, False), (True, False), (False, True)):
        future.set_overwrite_module_params_on_conversion(overwrite)
        future.set_swap_module_params_on_conversion(swap)
        try:
            torch.manual_seed(0)
            layer = torch.nn.Linear(2, 1)
            layer(torch.ones(1, 2)).sum().backward()
            weight, storage = layer.weight, layer.weight.data_ptr()
            layer.double()
            same_object, grad = layer.weight is weight, str(layer.weight.grad.dtype)
            other = torch.nn.Linear(2, 1).double().state_dict()
            before = layer.weight.data_ptr()
            layer.load_state_dict(other)
            observed += [
                (same_object, str(weight.dtype), grad, layer.weight.grad is None, storage == layer.weight.data_ptr()),
                (layer.weight.data_ptr() == before, torch.equal(layer.weight, other["weight"]), type(layer.weight)),
            ]
        finally:
            future.set_overwrite_module_params_on_conversion(False)
            future.set_swap_module_params_on_conversion(False)
    return observed


@differential
def test_operators_of_ones_own(torch: Any) -> Any:
    name = f"names_{torch.__name__}"

    @torch.library.custom_op(f"{name}::cube", mutates_args=(), schema="(Tensor x, float factor) -> Tensor")
    def cube(x: Any, factor: float) -> Any:
        return x**3 * factor

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 3 * ctx.saved_tensors[0] ** 2 * ctx.factor, None

    plain = cube(torch.tensor([2.0]), 1.0)
    cube.register_autograd(backward, setup_context=keep)
    cube.register_fake(lambda x, factor: torch.empty_like(x))
    x = torch.tensor([2.0], requires_grad=True)
    getattr(torch.ops, name).cube(x, 2.0).sum().backward()
    return plain, x.grad, tuple(cube(torch.ones(3, device="meta"), 1.0).shape)


@differential
def test_annotations_of_layers_are_types(torch: Any) -> Any:
    return (
        # from Python 3.14 on objects do not have the annotations of their class
        sys.version_info < (3, 14) and typing.get_type_hints(torch.nn.CrossEntropyLoss(), globalns={}, localns={}),
        torch.nn.Linear.__annotations__["in_features"],
        "__constants__" in torch.nn.MaxPool2d.__annotations__,
    )


@differential
def test_parts_of_a_tensors_text(torch: Any) -> Any:
    text = module(torch, "_tensor_str")
    x = torch.tensor([[1.5, 2.0], [3.0, 4.25]])
    return (
        text._tensor_str(x, 4),
        text._add_suffixes("x([1, 2]", ["nodes=3", "is_sorted=True"], 2, False),
        text._str_intern(x, tensor_contents="..."),
    )


@differential
def test_operators_that_few_programs_call(torch: Any) -> Any:
    aten, x = torch.ops.aten, torch.arange(6.0).reshape(2, 3)
    return (
        aten.index.Tensor(x, [None, torch.tensor([2, 0])]),
        aten._local_scalar_dense.default(x[1, 1]),
        aten._is_all_true(x > 0),
        aten._is_any_true(x > 0),
        aten._pin_memory is not None,
        outcome(lambda: aten._assert_scalar(False, "not so"), "not so"),
        outcome(lambda: aten._assert_tensor_metadata(x, None, None, torch.int64), "dtype mismatch"),
        aten._assert_tensor_metadata(x, [2, 3], [3, 1], torch.float32),
    )


@differential
def test_small_names_that_libraries_import(torch: Any) -> Any:
    device, dtype, non_blocking, memory_format = module(torch, "_C")._nn._parse_to("cpu", torch.float64)
    reduction = module(torch, "distributed").ReduceOp
    return (
        str(device), dtype, non_blocking, memory_format,
        module(torch, "_utils")._element_size(torch.float64),
        reduction.SUM != reduction.MAX, module(torch, "distributed.fsdp").ShardingStrategy.FULL_SHARD.name,
        issubclass(module(torch, "jit").TracerWarning, Warning),
        module(torch, "jit.annotations").BroadcastingList2[int],
        int(module(torch, "onnx").TensorProtoDataType.FLOAT),
        module(torch, "distributed.constants").default_pg_timeout,
        module(torch, "hub")._get_torch_home(), callable(module(torch, "utils.model_zoo").tqdm),
        module(torch, "distributions.multivariate_normal").Distribution is torch.distributions.Distribution,
        module(torch, "_subclasses.fake_tensor").is_fake(torch.ones(1)),
        isinstance(torch.ones(1), torch._C.TensorBase), type(torch.Tensor) is torch._C._TensorMeta,
        torch._shape_as_tensor(torch.ones(2, 3)),
    )  # fmt: skip


def test_a_loader_that_has_pytorchs_attributes_alone() -> None:
    """Libraries hand such objects to the loader's iterators."""
    from flambeau.utils.data.dataloader import _DatasetKind, _SingleProcessDataLoaderIter

    class Loader:
        _IterableDataset_len_called, _auto_collation, drop_last, generator = None, False, False, None
        dataset, _dataset_kind, _index_sampler = [1, 2, 3], _DatasetKind.Iterable, range(10)
        pin_memory, num_workers, timeout, persistent_workers = False, 0, 0, False

        @staticmethod
        def collate_fn(x: Any) -> Any:
            return x

    loader: Any = Loader()
    assert list(_SingleProcessDataLoaderIter(loader)) == [1, 2, 3]
