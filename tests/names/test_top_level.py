"""Rare names of the package itself: storages of one dtype, checks, symbolic sizes, settings, control flow."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

from tests.support.differential import differential, outcome, warned


@differential
def test_storages_of_one_dtype(torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = torch.FloatStorage([1.0, 2.0])
        return (
            type(storage).__name__,
            isinstance(storage, torch.FloatStorage),
            isinstance(storage, torch.DoubleStorage),
            isinstance(torch.ones(2, dtype=torch.int64).storage(), torch.LongStorage),
            str(torch.FloatStorage.dtype),
            storage.type(),
            storage.double().tolist(),
            str(storage.half().dtype),
            storage.long().tolist(),
            torch.IntStorage(3).size(),
            torch.FloatStorage.from_buffer(b"\0\0\x80\x3f", "native").tolist(),
            torch.Storage is torch.FloatStorage,
            {str(key): value for key, value in torch.storage._dtype_to_storage_type_map().items()},
            torch.ones(1).storage_type() is torch.FloatStorage,
            outcome(lambda: storage.pin_memory(), "accelerator"),
        )


def test_storages_of_files(tmp_path: Path) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        path = tmp_path / f"{torch.__name__}.bin"
        path.write_bytes(torch.arange(4.0).numpy().tobytes())
        private = torch.UntypedStorage.from_file(str(path), False, 8)
        shared = torch.UntypedStorage.from_file(str(path), True, 32)
        shared[0] = 7
        return (
            private.nbytes(),
            private.filename,
            shared.nbytes(),
            Path(str(shared.filename)).suffix,
            path.stat().st_size,
            path.read_bytes()[0],
            outcome(lambda: torch.UntypedStorage.from_file(str(path), False, 999), "smaller than the required mapping"),
            outcome(lambda: torch.UntypedStorage.from_file(str(path) + "x", False, 9), "unable to open file"),
        )

    scenario()


@differential
def test_checks(torch: Any) -> Any:
    return [
        outcome(action, "Expected cond to be True", "own text", "must be a", "single nonzero")
        for action in (
            lambda: torch._check(False),
            lambda: torch._check(False, lambda: "own text"),
            lambda: torch._check(1),
            lambda: torch._check(False, "own text"),
            lambda: torch._check_index(False),
            lambda: torch._check_value(False),
            lambda: torch._check_type(False),
            lambda: torch._check_not_implemented(False),
            lambda: torch._check_is_size(-1),
            lambda: torch._check_tensor_all(torch.tensor([True, False])),
            lambda: torch._check_tensor_all(True),
            lambda: torch._assert(False, "own text"),
            lambda: torch._assert_async(torch.tensor(0)),
            lambda: torch._assert_async(torch.tensor(0), "own text"),
        )
    ] + [torch._check(True), torch._check_is_size(2), torch._assert(torch.tensor(True), "own text")]


@differential
def test_sizes_as_symbols(torch: Any) -> Any:
    return (
        torch.sym_int(3.7),
        torch.sym_int(-3.7),
        torch.sym_float(3),
        [torch.sym_max(2, 3.5), torch.sym_max(3, 2.5), torch.sym_min(2, 3.5)],
        torch.sym_not(True),
        torch.sym_ite(True, 1, 2),
        torch.sym_sum([1, 2]),
        torch.sym_fresh_size(3),
        isinstance(3, torch.SymInt),
        outcome(lambda: torch.sym_ite(1, 2, 3), "expected SymBool or bool"),
    )


@differential
def test_settings(torch: Any) -> Any:
    observed: list[Any] = [torch.get_deterministic_debug_mode(), torch.get_float32_matmul_precision()]
    for mode in ("warn", "error", 1, "default"):
        torch.set_deterministic_debug_mode(mode)
        observed += [torch.get_deterministic_debug_mode(), torch.is_deterministic_algorithms_warn_only_enabled()]
    torch.set_float32_matmul_precision("high")
    observed += [torch.get_float32_matmul_precision()]
    torch.set_float32_matmul_precision("highest")
    torch.set_warn_always(True)
    observed += [torch.is_warn_always_enabled()]
    torch.set_warn_always(False)
    return (
        observed,
        outcome(lambda: torch.set_deterministic_debug_mode("x"), "invalid value of debug_mode"),
        outcome(lambda: torch.set_deterministic_debug_mode(5), "expected 0, 1, or 2"),
        outcome(lambda: torch.set_num_interop_threads(0), "expects a positive integer"),
        outcome(lambda: torch.set_warn_always(1), "expects a bool"),
        outcome(lambda: torch.set_flush_denormal(1), "expects a bool"),
        torch.get_device_module("cpu") is torch.cpu,
        torch.get_device_module() is torch.cpu,
        outcome(lambda: torch.get_device_module("nothing"), "device type at start of device string"),
    )


@differential
def test_control_flow(torch: Any) -> Any:
    return (
        torch.cond(torch.tensor(False), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),)),
        torch._higher_order_ops.while_loop(lambda i: i < 3, lambda i: (i + 1,), (torch.tensor(0),)),
    )


@differential
def test_dtypes_of_packed_data(torch: Any) -> Any:
    names = ["bits8", "bits1x8", "bits16", "int4", "uint1", "float8_e8m0fnu", "float4_e2m1fn_x2", "qint8", "quint4x2"]
    return [
        (name, repr(each), each.itemsize, each.is_floating_point, outcome(lambda each=each: each.is_signed), each.abbr)
        for name in names
        for each in [getattr(torch, name)]
    ] + [getattr(torch, name).abbr for name in ("float32", "bfloat16", "int64", "uint8", "bool", "complex64")]


@differential
def test_packed_dtypes_refuse_arithmetic(torch: Any) -> Any:
    made = torch.empty(2, dtype=torch.int4)
    return (
        outcome(lambda: made + 1, "not implemented for 'Int4'"),
        outcome(lambda: made + 1, "not implemented for 'Int4'"),  # now that it has been met once
        outcome(made.neg, "not implemented for 'Int4'"),
        outcome(made.neg, "not implemented for 'Int4'"),
        outcome(made.sum, "not implemented for 'Int4'"),
        outcome(made.__repr__, "not implemented for 'Int4'"),
    )


@differential
def test_versions(torch: Any) -> Any:
    version = importlib.import_module(f"{torch.__name__}.torch_version").TorchVersion
    ours = version("2.13.0+flambeau.0.2")
    return (
        ours >= "2.13",
        ours > "2.9.1",
        ours == "2.13.0",
        ours >= (2, 13),
        ours < (3,),
        ours < "2.13.0+flambeau.0.10",
        version("1.9.0a1") < "1.9.0",
        version("1.9.0.dev3") < "1.9.0a1",
        version("1.9.0") == "1.9",
        ours.split("+")[0],
        ours > "parrot",
        isinstance(ours, str),
    )


@differential
def test_removed_functions(torch: Any) -> Any:
    eye = torch.eye(2)
    return [
        outcome(lambda name=name: getattr(torch, name)(eye, eye), "deprecated since version 1.9 and is now removed")
        for name in ("eig", "lstsq", "solve", "symeig", "matrix_rank")
    ] + [outcome(lambda: eye.symeig(), "now removed"), outcome(lambda: eye.reinforce(1), "reinforce() was removed")]


@differential
def test_rare_methods(torch: Any) -> Any:
    x = torch.arange(6.0).reshape(2, 3)
    return (
        x.clone().apply_(lambda value: value + 1),
        x.clone().map_(torch.arange(3.0), lambda a, b: a * b),
        x.clone().map2_(x, torch.ones(3), lambda a, b, c: a + b + c),
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order(),
        x.dim_order(),
        x.const_data_ptr() == x.data_ptr(),
        x.is_distributed(),
        torch.dequantize(x),
        x.name,
        str(x.grad_dtype),
        x.slice_inverse(x),
        torch.frobenius_norm(x, 1, True),
        torch.nuclear_norm(x),
        x.clone().module_load(x + 1),
        warned(lambda: x.resize(3, 2)),
        outcome(lambda: torch.ones(2, requires_grad=True).apply_(abs), "Can't call apply_()"),
        outcome(lambda: x.q_scale(), "Could not run 'aten::q_scale'"),
        outcome(lambda: x.ipu(), "ipu"),
        outcome(lambda: x.ccol_indices(), "expected sparse column compressed tensor layout"),
    )


@differential
def test_products_of_sparse_matrices(torch: Any) -> Any:
    dense = torch.arange(9.0).reshape(3, 3)
    sparse = torch.sparse_coo_tensor([[0, 0, 2], [1, 2, 0]], [1.0, 2.0, 3.0], (3, 3))
    eye = torch.eye(3).to_sparse()

    def parts(result: Any) -> Any:
        return result._indices().tolist(), result._values(), tuple(result.shape)

    return (
        torch.spmm(sparse, dense),
        torch.dsmm(sparse, dense),
        parts(torch.hspmm(sparse, dense)),
        parts(torch.smm(sparse, dense)),
        parts(torch.sspaddmm(eye, sparse, dense, beta=2, alpha=3)),
        outcome(lambda: dense.smm(dense), "can only be called on sparse tensors"),
    )
