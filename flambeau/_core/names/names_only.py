"""Modules that PyTorch has as files and that hold nothing but names here: each is an entry below, made on its import.

Their names lead elsewhere in the package, or raise an error that says why they cannot be used. The package asks
`spec_of` for modules that no file is found of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .absent import Table

_PACKAGE = __name__.partition(".")[0]
_TABLES: dict[str, tuple[str, Table]] = {}


def _module(name: str, doc: str) -> Table:
    """A module of that name and docstring: the table to put its names into."""
    table = Table(f"{_PACKAGE}.{name}")
    _TABLES[table.module] = doc, table
    return table


class _Names(Loader):
    """Makes a module of a table; `and_then` is called with it."""

    def __init__(self, and_then: Callable[[ModuleType, str], Any] | None) -> None:
        self.and_then = and_then

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        doc, table = _TABLES[name]
        vars(module).update(zip(("__getattr__", "__dir__"), table.parts(), strict=True), __doc__=doc)
        if self.and_then is not None:
            self.and_then(module, name)


def spec_of(name: str, and_then: Callable[[ModuleType, str], Any] | None = None) -> ModuleSpec | None:
    """How to import a module that is nothing but names; None if there is none of that name."""
    if name not in _TABLES:
        return None
    return ModuleSpec(name, _Names(and_then), is_package=any(each.startswith(f"{name}.") for each in _TABLES))


def below(package: str) -> list[str]:
    """The full names of the modules here that are inside of a package."""
    return [each for each in _TABLES if each.startswith(f"{package}.")]


# ----- what PyTorch has compiled, and its compiler ------------------------------------------------------------------

_autograd = _module("_C._autograd", "What autograd's compiled part has, under the names of `torch._C._autograd`.")
_autograd.elsewhere("SavedTensor", "_core.node").elsewhere("kineto_available", "profiler._marks")
_autograd.returning(lambda: False, functions="_profiler_enabled")
_autograd.returning(lambda: None, functions="_kineto_step _clear_callbacks _set_empty_test_observer")

_module("_C._distributed_c10d", "Several processes, under their compiled module's name.").elsewhere(
    "DebugLevel FileStore HashStore PrefixStore ProcessGroup ReduceOp Store TCPStore Work get_debug_level "
    "set_debug_level",
    "distributed",
).elsewhere("_resolve_process_group", "distributed.distributed_c10d").absent(
    "groups are registered when they are made", functions="_register_process_group"
)
_NO_PART = "distributed: this part is not built"
_module(
    "_C._distributed_rpc", "Names of PyTorch's compiled module for calls between processes: this part is not built."
).absent(_NO_PART, functions="_is_current_rpc_agent_set _get_current_rpc_agent", classes="ProcessGroup Work Store")
_module("_dynamo.external_utils", "`torch._dynamo.external_utils`.").elsewhere("is_compiling", "compiler._marks")
_module(
    "_functorch.eager_transforms", "`torch._functorch.eager_transforms`: derivatives as functions of functions."
).elsewhere("functionalize grad grad_and_value hessian jacfwd jacrev jvp linearize vjp", "func")
_module(
    "_functorch.functional_call", "`torch._functorch.functional_call`: modules called with other parameters."
).elsewhere("functional_call stack_module_state", "func")
_module("functorch.einops", "`functorch.einops`: `rearrange` in the notation of einops.").elsewhere(
    "rearrange", "func._rearrange"
)
_experimental = _module(
    "functorch.experimental", "`functorch.experimental`: what was tried out there and is `torch.func` now."
)
_experimental.elsewhere("functionalize hessian jacfwd jvp replace_all_batch_norm_modules_", "func")
_experimental.elsewhere("chunk_vmap", "_functorch.apis").submodules("control_flow")
_module(
    "functorch.experimental.control_flow", "`functorch.experimental.control_flow`: branches as functions."
).elsewhere("cond", "_higher_order_ops")
_module("_inductor.cpp_builder", "PyTorch's calls of a C++ compiler: there are none here.").absent(
    "nothing is compiled as C++", functions="get_cpp_compiler"
)
_NO_COMPILER = "PyTorch's compiler does not exist here"
_module("_inductor.cpu_vec_isa", "What PyTorch's compiler knows of processors: it does not exist here.").absent(
    _NO_COMPILER, functions="pick_vec_isa valid_vec_isa_list"
)
_module("_inductor.runtime", "What PyTorch's generated code runs on: not built.").submodules("cache_dir_utils")
_module("_inductor.runtime.cache_dir_utils", "Where PyTorch's compiler keeps code: it does not exist here.").absent(
    _NO_COMPILER, functions="cache_dir default_cache_dir"
)

# ----- several processes --------------------------------------------------------------------------------------------

_module("distributed._composable", "The older name of functions that shard a model.").submodules("fsdp").elsewhere(
    "fully_shard", "distributed.fsdp"
).absent(_NO_PART, functions="checkpoint replicate")
_module("distributed._composable.fsdp", "The older name of `torch.distributed.fsdp`'s functions.").elsewhere(
    "CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy fully_shard register_fsdp_forward_method",
    "distributed.fsdp",
)
_tensor = _module("distributed._tensor", "The older name of `torch.distributed.tensor`.").submodules("experimental")
_tensor.elsewhere("DTensor distribute_module distribute_tensor Partial Placement Replicate Shard", "distributed.tensor")
_tensor.elsewhere("DeviceMesh init_device_mesh", "distributed")
_module("distributed._tensor.experimental", "What is not settled of `torch.distributed.tensor`.").elsewhere(
    "implicit_replication local_map", "distributed.tensor.experimental"
).absent(_NO_PART, functions="context_parallel register_sharding")
_module("distributed.tensor.experimental._attention", "Attention over several processes: not built yet.").absent(
    _NO_PART, functions="context_parallel set_rotate_method context_parallel_unshard"
)
_module("distributed.utils", "Helpers of `torch.distributed.utils`: not built yet.").absent(
    _NO_PART, functions="_sync_module_states _sync_params_and_buffers _verify_param_shape_across_processes"
)

# ----- quantization -------------------------------------------------------------------------------------------------

_NO_SPARSE, _SPARSE = (
    "Layers with sparse quantized weights: not built yet.",
    "sparse quantized weights are not built yet",
)
_module("ao.nn.sparse", _NO_SPARSE).submodules("quantized")
_module("ao.nn.sparse.quantized", _NO_SPARSE).submodules("dynamic").absent(_SPARSE, classes="Linear LinearPackedParams")
_module("ao.nn.sparse.quantized.dynamic", _NO_SPARSE).absent(_SPARSE, classes="Linear")
_module("ao.nn.sparse.quantized.dynamic.linear", _NO_SPARSE).absent(_SPARSE, classes="Linear")
_module("ao.nn.sparse.quantized.linear", _NO_SPARSE).absent(_SPARSE, classes="Linear LinearPackedParams")
_module("ao.nn.sparse.quantized.utils", _NO_SPARSE).absent(_SPARSE, classes="LinearBlockSparsePattern")
_module("ao.quantization.fx.fusion_patterns", "The older name of `fuse_handler`.").elsewhere(
    "DefaultFuseHandler FuseHandler", "ao.quantization.fx.fuse_handler"
)
_module("ao.quantization.fx.quantization_patterns", "The older name of `quantize_handler`.").elsewhere(
    "BatchNormQuantizeHandler BinaryOpQuantizeHandler CatQuantizeHandler ConvReluQuantizeHandler "
    "CopyNodeQuantizeHandler CustomModuleQuantizeHandler DefaultNodeQuantizeHandler EmbeddingQuantizeHandler "
    "FixedQParamsOpQuantizeHandler GeneralTensorShapeOpQuantizeHandler LinearReLUQuantizeHandler QuantizeHandler "
    "RNNDynamicQuantizeHandler StandaloneModuleQuantizeHandler",
    "ao.quantization.fx.quantize_handler",
)
_module("ao.quantization.quantize_jit", "Quantization of scripted models: not built.").absent(
    "scripted models are not quantized: quantize_fx quantizes the graphs that fx traces",
    functions="convert_dynamic_jit convert_jit fuse_conv_bn_jit prepare_dynamic_jit prepare_jit quantize_dynamic_jit "
    "quantize_jit script_qconfig script_qconfig_dict",
)

# ----- TorchScript and ONNX -----------------------------------------------------------------------------------------

_module(
    "jit._recursive",
    "How TorchScript compiles modules, under the names of `torch.jit._recursive`: there is no compiler.",
).absent(
    "TorchScript's compiler does not exist: what is scripted runs as Python",
    functions="create_script_module infer_methods_to_compile make_stub_from_method wrap_cpp_module",
    classes="ScriptMethodStub",
)
_module("jit.mobile", "`torch.jit.mobile`: files of TorchScript for phones, which are not run.").absent(
    "files for the lite interpreter are not run: torch.jit.load reads those of torch.jit.save",
    functions="_load_for_lite_interpreter", classes="LiteScriptModule",
)  # fmt: skip
for _version, _rules in (
    (9, "add masked_fill softmax index_select mul sub unsqueeze squeeze"),
    (11, "add squeeze unsqueeze select"),
    (12, "einsum dropout"),
):
    _module(
        f"onnx.symbolic_opset{_version}",
        f"PyTorch's rules for opset {_version}, which its older exporter uses: here every op has a converter in their "
        "place.",
    ).absent(
        "the rules of PyTorch's older exporter have no use here: a rule of your own calls g.op(...)", functions=_rules
    )

# ----- devices ------------------------------------------------------------------------------------------------------

_module("autograd.profiler_legacy", "`torch.autograd.profiler_legacy`: the profiler under its older name.").elsewhere(
    "profile", "profiler._profile"
)

_NO_MPS = "Cannot execute torch.mps.{name}() without MPS backend: this installation of Flambeau has none"
_module("mps.event", "Events on Apple's GPUs: there are none.").raising(RuntimeError, _NO_MPS, classes="Event")
_module("mps.profiler", "Profiles of Apple's GPUs: there are none.").raising(
    RuntimeError, _NO_MPS, functions="is_capturing_metal is_metal_capture_enabled metal_capture profile start stop"
)
_mtia = _module("mtia.memory", "The memory of MTIA devices: there are none.")
_mtia.returning(lambda: 0, functions="max_memory_allocated memory_allocated").returning(dict, functions="memory_stats")
_mtia.returning(lambda: None, functions="reset_peak_memory_stats")
_module("mtia.mtia_graph", "Recorded work of MTIA devices: there are none.").raising(
    RuntimeError,
    "Cannot execute torch.mtia.{name}() without MTIA backend: this installation of Flambeau has none",
    functions="graph_pool_handle", classes="MTIAGraph graph",
)  # fmt: skip

_NO_XPU = "torch.xpu.{name} needs an Intel GPU, and this installation of Flambeau has none"
_NOT_COMPILED = "Torch not compiled with XPU enabled: torch.xpu.{name} needs such a device, and Flambeau has none"
_module("xpu.graphs", "Recorded work of Intel's GPUs: there are none.").raising(
    RuntimeError, _NO_XPU, functions="graph_pool_handle is_current_stream_capturing make_graphed_callables",
    classes="XPUGraph graph",
)  # fmt: skip
_xpu = _module("xpu.memory", "The memory of Intel's GPUs: there are none.")
_xpu.returning(lambda: 0, functions="max_memory_allocated max_memory_reserved memory_allocated memory_reserved")
_xpu.returning(list, functions="memory_snapshot").returning(OrderedDict, functions="memory_stats")
_xpu.returning(dict, functions="memory_stats_as_nested_dict").returning(lambda: None, functions="empty_cache")
_xpu.raising(
    AssertionError,
    _NOT_COMPILED,
    functions="get_per_process_memory_fraction mem_get_info set_per_process_memory_fraction",
).raising(
    AttributeError,
    _NO_XPU,
    functions="change_current_allocator reset_accumulated_memory_stats reset_peak_memory_stats",
).raising(RuntimeError, _NO_XPU, functions="use_mem_pool", classes="MemPool XPUPluggableAllocator")
_xpu = _module("xpu.random", "Random numbers of Intel's GPUs: there are none.")
_xpu.returning(list, functions="get_rng_state_all")
_xpu.returning(lambda: None, functions="manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all")
_xpu.raising(AssertionError, _NOT_COMPILED, functions="get_rng_state initial_seed")
_module("xpu.streams", "Queues of Intel's GPUs: there are none.").raising(RuntimeError, _NO_XPU, classes="Event Stream")

_NO_CUDA = "torch.cuda.{name} needs a CUDA device, and this version of Flambeau has none"
_module("cuda.gds", "Reading files straight into the memory of CUDA devices: there are none.").raising(
    RuntimeError, _NO_CUDA, functions="gds_deregister_buffer gds_register_buffer", classes="GdsFile"
)
_module("cuda.tunable", "Tuned kernels of CUDA devices: there are none.").raising(
    AttributeError,
    _NO_CUDA,
    functions="enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results "
    "get_rotating_buffer_size get_validators is_enabled mgpu_tune_gemm_in_file read_file record_untuned_enable "
    "record_untuned_is_enabled set_filename set_max_tuning_duration set_max_tuning_iterations "
    "set_numerical_check_tolerances set_rotating_buffer_size tune_gemm_in_file tuning_enable tuning_is_enabled",
)
