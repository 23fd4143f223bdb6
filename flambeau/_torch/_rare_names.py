"""Names of the package that few programs use: where each stands. `__getattr__` of the package asks here last."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau._core.names.absent import Table
from flambeau._dispatch.public.protocol import with_types
from flambeau._dispatch.public.registry import in_namespace

HOMES: dict[str, str] = {
    name: module
    for module, names in {
        "_core.names.error_classes": "AcceleratorError FatalError OutOfMemoryError",
        "_core.names.legacy_storages": "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
        "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage QInt32Storage QInt8Storage "
        "QUInt2x4Storage QUInt4x2Storage QUInt8Storage ShortStorage",
        "_core.qscheme": "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine "
        "per_tensor_symmetric qscheme",
        "_core.names.symbolic": "SymBool SymFloat SymInt sym_constrain_range sym_constrain_range_for_size sym_float "
        "sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum",
        "_dispatch.public.checks": "_assert _assert_async _check _check_index _check_is_size _check_not_implemented "
        "_check_tensor_all _check_tensor_all_with _check_type _check_value _check_with",
        "_dispatch.public.choices": "get_float32_matmul_precision get_num_interop_threads init_num_threads "
        "set_float32_matmul_precision set_flush_denormal set_num_interop_threads",
        "_dispatch.public.keys": "DispatchKey DispatchKeySet ExcludeDispatchKeyGuard",
        "_compile": "_disable_dynamo",
        "_higher_order_ops": "cond while_loop",
        "_jit_internal": "_overload",
        "_utils": "classproperty",
        "onnx.operators": "_shape_as_tensor",
        "_utils_internal": "get_file_path prepare_multiprocessing_environment",
        "accelerator._device_module": "get_device_module",
        "amp": "GradScaler",
        "autograd.anomaly_mode": "set_anomaly_enabled",
        "compiler": "compile",
        "cpu": "Event Stream",
        "futures": "Future",
        "_dispatch.public.overrides": "DisableTorchFunction",
        "_serialization.records": "PyTorchFileReader PyTorchFileWriter",
        "jit._containers": "ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptList ScriptListIterator",
        "jit._counters": "AVG AggregationType LockingLogger LoggerBase NoopLogger SUM",
        "jit._file_check": "FileCheck",
        "jit._types": "AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType "
        "FutureType InferredType IntType InterfaceType ListType NoneType NumberType OptionalType PyObjectType RRefType "
        "StreamObjType StringType SymBoolType SymIntType TensorType TupleType Type UnionType unify_type_list",
        "ops._schema": "Argument FunctionSchema parse_schema",
        "ops._tags": "Tag",
        "jit": "JITException ScriptFunction ScriptModule CompilationUnit",
        "jit._views": "BenchmarkConfig BufferDict ModuleDict ParameterDict",
        "jit._module": "ScriptMethod",
        "jit._async": "fork wait",
        "jit.mobile": "LiteScriptModule",
        "storage": "StorageBase",
        "torch_version": "TorchVersion",
        "utils.throughput_benchmark": "ThroughputBenchmark",
        "_tensor": "_rebuild_from_type_v2",
    }.items()
    for name in names.split()
}
"""Where a name stands."""

_COMPILED = frozenset((
    "_assert_async", "_shape_as_tensor", "fork", "get_num_interop_threads", "init_num_threads", "parse_schema",
    "set_anomaly_enabled", "set_flush_denormal", "set_num_interop_threads", "sym_constrain_range",
    "sym_constrain_range_for_size", "unify_type_list", "wait",
))  # fmt: skip
"""Names above that are compiled functions in PyTorch: as attributes of classes they are no methods."""

CONSTANTS: dict[str, Any] = {
    "PRIVATE_OPS": ("unique_dim",),
    "TYPE_CHECKING": False,
    "USE_GLOBAL_DEPS": True,
    "USE_RTLD_GLOBAL_WITH_LIBTORCH": False,
    "has_lapack": True,
    "has_mkl": False,
    "has_openmp": False,
    "has_spectral": True,
}

_SCRIPT = "TorchScript's compiler does not exist: what is scripted runs as Python"
_REMOVED = (
    "This function was deprecated since version 1.9 and is now removed: `torch.{name}` has a successor in "
    "`torch.linalg`"
)
_REMOVED_NAMES = "eig lstsq matrix_rank solve symeig"
_PYTHON = (*_REMOVED_NAMES.split(), "compiled_with_cxx11_abi")
"""Functions below that are Python code in PyTorch."""
_table = (
    Table("flambeau")
    .returning(lambda: False, functions="is_vulkan_available compiled_with_cxx11_abi")
    .raising(RuntimeError, _REMOVED, functions=_REMOVED_NAMES)
    .raising(
        NotImplementedError,
        "Could not run 'aten::{name}' with arguments from the 'CPU' backend: PyTorch has no such kernel either",
        functions="native_norm indices_copy values_copy",
    )
    .absent(
        _SCRIPT,
        functions="import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir "
        "parse_type_comment",
        classes="AliasDb BenchmarkExecutionStats Block CallStack Code ConcreteModuleType ConcreteModuleTypeBuilder "
        "DeserializationStorageContext ErrorReport ExecutionPlan Gradient Graph GraphExecutorState Node OperatorInfo "
        "ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule "
        "TracingState Use Value",
    )
    .raising(  # PyTorch's compiler hands such objects to itself: nobody can make one, or ask it for anything
        TypeError,
        "torch._C.{name}: No constructor defined!",
        classes="ArgumentSpec Capsule CompleteArgumentSpec DeepCopyMemoTable IODescriptor ScriptClass "
        "ScriptClassFunction",
    )
)  # fmt: skip


def names() -> list[str]:
    """All of them."""
    return sorted({*HOMES, *CONSTANTS, *_table.makers, "Storage", "torch", "legacy_contiguous_format"})


def find(name: str) -> Any:
    """The object that the package has under a rare name; a KeyError if there is none."""
    if name in HOMES:
        found = getattr(importlib.import_module(f"flambeau.{HOMES[name]}"), name)
        return in_namespace(found) if name in _COMPILED else found
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name == "Storage":
        return importlib.import_module("flambeau._core.names.legacy_storages").FloatStorage
    if name == "torch":
        return importlib.import_module("flambeau")
    if name == "legacy_contiguous_format":
        return importlib.import_module("flambeau").contiguous_format
    if name in _table.makers:
        value = _table.makers[name](name)
        if isinstance(value, type):
            return value
        return with_types(value) if name in _PYTHON else in_namespace(with_types(value))
    if name.startswith(("batch_norm_", "cud", "miopen_")):
        kernels = importlib.import_module("flambeau.cuda._missing").kernels
        return in_namespace(with_types(kernels.makers[name](name)))
    raise KeyError(name)
