"""What backends quantize, pattern by pattern, beside PyTorch's tables."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.support.differential import differential

BACKENDS = ("native", "fbgemm", "x86", "qnnpack", "onednn", "executorch", "tensorrt")
_POOLS = ("max_pool1d", "max_pool2d", "max_pool3d")


def module(torch: Any, name: str) -> Any:
    importlib.import_module(f"{torch.__name__}.ao.quantization.quantize_fx")  # PyTorch's own needs it
    return importlib.import_module(f"{torch.__name__}.ao.quantization.{name}")


def text(torch: Any, pattern: Any) -> Any:
    """The parts of a pattern by names that are the same in both libraries."""
    if isinstance(pattern, tuple):
        return tuple(text(torch, each) for each in pattern)
    pools = {getattr(torch.nn.functional, name): name for name in _POOLS}
    if isinstance(pattern, type):
        return (pattern.__module__.replace("flambeau", "torch").split(".modules")[0], pattern.__name__)
    return pattern if isinstance(pattern, str) else pools.get(pattern, getattr(pattern, "__name__", repr(pattern)))


def about(torch: Any, config: Any) -> Any:
    found = config.to_dict()
    types = [
        {key: str(value).replace("flambeau", "torch") for key, value in each.items()} for each in found["dtype_configs"]
    ]
    classes = [
        text(torch, getattr(config, name))
        for name in ("root_module", "qat_module", "reference_quantized_module", "fused_module")
    ]
    further = (config._input_type_to_index, sorted(config._num_tensor_args_to_observation_type))
    return (config.observation_type.name, types, classes, further, sorted(found))


@pytest.mark.parametrize("name", BACKENDS)
@differential
def test_patterns_and_types(torch: Any, name: str) -> Any:
    backend = getattr(module(torch, f"backend_config.{name}"), f"get_{name}_backend_config")()
    entries = [
        (text(torch, each.pattern), text(torch, each._pattern_complex_format), about(torch, each))
        for each in backend.configs
        if text(torch, each.pattern) not in ("concat", "concatenate")  # the same function as `cat` here
    ]
    return backend.name, sorted(map(repr, entries))


@differential
def test_the_older_backend_with_halves(torch: Any) -> Any:
    native = module(torch, "backend_config.native")
    backend = native.get_test_only_legacy_native_backend_config()
    as_dict = native.get_test_only_legacy_native_backend_config_dict()
    entries = sorted(repr((text(torch, each.pattern), about(torch, each))) for each in backend.configs)
    return backend.name, entries, len(as_dict["configs"]), as_dict["name"]


@differential
def test_questions_to_a_backend(torch: Any) -> Any:
    utils, backends = module(torch, "backend_config.utils"), module(torch, "backend_config")
    native, onednn = backends.get_native_backend_config(), backends.get_onednn_backend_config()
    functions = (
        "get_pattern_to_dtype_configs get_pattern_to_input_type_to_index get_module_to_qat_module "
        "get_root_module_to_quantized_reference_module get_fuser_method_mapping get_fusion_pattern_to_root_node_getter "
        "get_fusion_pattern_to_extra_inputs_getter"
    )
    keys = [
        sorted(repr(text(torch, key)) for key in getattr(utils, name)(backend))
        for name in functions.split()
        for backend in (native, onednn)
    ]
    classes = [sorted(repr(text(torch, each)) for each in getattr(utils, name)(native)) for name in ("get_qat_module_classes", "get_fused_module_classes")]  # noqa: E501  # fmt: skip
    nn = torch.nn
    conv, norm, relu = nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1).eval(), nn.ReLU().eval()
    fused = utils.get_fuser_method_mapping(native)[nn.ReLU, (nn.BatchNorm2d, nn.Conv2d)](False, relu, (norm, conv))
    pretty = utils.entry_to_pretty_str(
        {"observation_type": 1, "pattern": (nn.functional.max_pool2d, "view"), "dtype_configs": [{"is_dynamic": True}]}
    )
    readable = utils.pattern_to_human_readable((nn.functional.max_pool1d, "view"))
    name = utils.remove_boolean_dispatch_from_name(nn.functional.max_pool3d)
    return keys, classes, type(fused).__name__, pretty, readable, name


@differential
def test_a_backend_of_ones_own(torch: Any) -> Any:
    backends = module(torch, "backend_config")
    types = backends.DTypeConfig(torch.quint8, torch.quint8, backends.DTypeWithConstraints(torch.qint8, -127, 127))
    pattern = (
        backends.BackendPatternConfig(torch.nn.Linear)
        .set_observation_type(backends.ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT)
        .add_dtype_config(types)
        .set_root_module(torch.nn.Linear)
        .set_qat_module(torch.ao.nn.qat.Linear)
        .set_reference_quantized_module(torch.ao.nn.quantized.reference.Linear)
    )
    own = backends.BackendConfig("mine").set_backend_pattern_configs([pattern]).set_name("own")
    again = backends.BackendConfig.from_dict(own.to_dict())
    back = backends.DTypeConfig.from_dict(types.to_dict())
    return (
        again.name,
        about(torch, again.configs[0]),
        back == types,
        types.weight_dtype,
        types.input_dtype,
        types.output_dtype,
        [each.name for each in backends.ObservationType],
    )
