"""Quantizing a model module by module: give it observers, let it see data, put quantized modules in place."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import flambeau as torch

from ... import nn
from ..nn import quantizable, quantized
from ..nn.intrinsic.modules.fused import _FusedModule
from ..nn.quantized.modules.functional_modules import FloatFunctional, QFunctional
from . import qconfig as configs
from .observer import _is_activation_post_process
from .qconfig import _assert_valid_qconfig
from .quantization_mappings import (
    DEFAULT_MODULE_TO_ACT_POST_PROCESS,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper
from .utils import DEPRECATION_WARNING, get_qparam_dict, has_no_children_ignoring_parametrizations

__all__ = [
    "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat", "propagate_qconfig_",
    "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip


def is_activation_post_process(module: Any) -> bool:
    """Whether a module watches or rounds."""
    return _is_activation_post_process(module)


def get_default_custom_config_dict() -> dict[str, dict[type, type]]:
    """Which classes of modules are watched and quantized by classes of their own."""
    return {
        "float_to_observed_custom_module_class": {
            nn.LSTM: quantizable.LSTM,
            nn.MultiheadAttention: quantizable.MultiheadAttention,
        },
        "observed_to_quantized_custom_module_class": {
            quantizable.LSTM: quantized.LSTM,
            quantizable.MultiheadAttention: quantized.MultiheadAttention,
        },
    }


def _warn() -> None:
    warnings.warn(DEPRECATION_WARNING, DeprecationWarning, stacklevel=3)


# ----- configurations ----------------------------------------------------------------------------------------------


def propagate_qconfig_(module: Any, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None) -> None:
    """Give each part of a model its configuration: its own, that of its name or class, or that of what holds it."""
    _propagate(module, qconfig_dict or {}, None, "", prepare_custom_config_dict or {})


def _propagate(module: Any, given: Any, outer: Any, name: str, custom: Any) -> None:
    found = given.get(name, given.get(type(module), outer))
    found = getattr(module, "qconfig", found)
    _assert_valid_qconfig(found, module)
    module.qconfig = found
    for last, child in module.named_children():
        names, classes = custom.get("non_traceable_module_name", []), custom.get("non_traceable_module_class", [])
        if last not in names and type(child) not in classes:
            _propagate(child, given, found, f"{name}.{last}" if name else last, {})


def _configured(module: Any) -> bool:
    return getattr(module, "qconfig", None) is not None


# ----- observers ---------------------------------------------------------------------------------------------------


def _observer_forward_hook(self: Any, input: Any, output: Any) -> Any:
    """Let the observer of a module see its output."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Any:
    """Let the observer of a module see its input."""
    return self.activation_post_process(input[0])


def _watch(module: Any, make: Callable[[], Any] | None = None) -> None:
    """Give a module an observer of its output, or of its input where the observer remembers nothing."""
    if not _configured(module) or isinstance(module, DeQuantStub):
        return
    observer = (make or module.qconfig.activation)()
    module.add_module("activation_post_process", observer)
    watched = getattr(observer, "activation_post_process", observer)
    memoryless = getattr(watched, "averaging_constant", None) == 1
    if memoryless:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _add_observers(module: Any, kinds: Any, inner: Any, custom: dict[type, Any]) -> None:
    for name, child in module.named_children():
        kind = type(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (FloatFunctional, QFunctional)):
            if _configured(child):
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or (inner is not None and kind in inner):
            _watch(child)
        elif child.training and kind in DEFAULT_MODULE_TO_ACT_POST_PROCESS:
            _watch(child, DEFAULT_MODULE_TO_ACT_POST_PROCESS[kind])
        elif _configured(child) and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if not issubclass(custom[kind], tuple(no_observer_set())):
                _watch(observed)
        else:
            _add_observers(child, kinds, inner, custom)
    if isinstance(module, nn.Sequential) or type(module) not in kinds:
        return
    if has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant"):
        _watch(module)


def add_quant_dequant(module: Any) -> Any:
    """Put each configured part of a model between a `QuantStub` and a `DeQuantStub`."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(
    model: Any,
    inplace: bool = False,
    allow_list: Any = None,
    observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Any:
    """A copy of a model, whose parts have `qconfig`, with observers."""
    _warn()
    return _prepare(model, inplace, allow_list, observer_non_leaf_module_list, prepare_custom_config_dict)


def _prepare(model: Any, inplace: bool, allow_list: Any, inner: Any = None, custom_config: Any = None) -> Any:
    if custom_config is None:
        custom_config = get_default_custom_config_dict()
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(each, "qconfig", None) for each in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
            "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=3,
        )
    kinds = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    _add_observers(model, kinds, inner, custom_config.get("float_to_observed_custom_module_class", {}))
    return model


def _remove_configuration(module: Any) -> None:
    for child in module.children():
        _remove_configuration(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for hooks, own in (
        (module._forward_pre_hooks, _observer_forward_pre_hook),
        (module._forward_hooks, _observer_forward_hook),
    ):
        for key in [key for key, hook in hooks.items() if hook is own]:
            del hooks[key]


# ----- quantized modules -------------------------------------------------------------------------------------------


def convert(
    module: Any,
    mapping: Any = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """A copy of a model with quantized modules in place of those that the mapping knows and that are configured."""
    _warn()
    return _convert_model(
        module, mapping, inplace, remove_qconfig, is_reference, convert_custom_config_dict, use_precomputed_fake_quant
    )


def _convert_model(
    module: Any,
    mapping: Any,
    inplace: bool,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    custom_config: Any = None,
    precomputed: bool = False,
) -> Any:
    if mapping is None:
        references = get_default_static_quant_reference_module_mappings
        mapping = references() if is_reference else get_default_static_quant_module_mappings()
    if custom_config is None:
        custom_config = get_default_custom_config_dict()
    if not inplace:
        module = copy.deepcopy(module)
    _convert(module, mapping, custom_config.get("observed_to_quantized_custom_module_class", {}), precomputed)
    if remove_qconfig:
        _remove_configuration(module)
    return module


def _convert(module: Any, mapping: Any, custom: Any, precomputed: bool) -> None:
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule) and type(child) not in custom:
            _convert(child, mapping, custom, precomputed)
        module._modules[name] = swap_module(child, mapping, custom, precomputed)


def swap_module(
    mod: Any, mapping: Any, custom_module_class_mapping: Any, use_precomputed_fake_quant: bool = False
) -> Any:
    """The quantized module for a configured one, with its hooks; others as they are."""
    if not _configured(mod):
        return mod
    kind = type(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping and getattr(mapping[kind], "_IS_REFERENCE", False):
        watch = mod.qconfig.weight()
        watch(mod.weight)
        made = mapping[kind].from_float(mod, get_qparam_dict(watch))
    elif kind in mapping:
        try:
            made = mapping[kind].from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
        except TypeError as error:
            if "use_precomputed_fake_quant" not in str(error):
                raise
            made = mapping[kind].from_float(mod)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    return made


# ----- all at once -------------------------------------------------------------------------------------------------


def quantize(model: Any, run_fn: Any, run_args: Any, mapping: Any = None, inplace: bool = False) -> Any:
    """Prepare a trained model, run it on data by `run_fn`, and convert it."""
    _warn()
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    _prepare(model, True, None)
    run_fn(model, *run_args)
    return _convert_model(model, mapping, True)


_OF_DTYPE: dict[Any, tuple[Any, tuple[type, ...]]] = {
    torch.qint8: (
        configs.default_dynamic_qconfig,
        (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell),
    ),
    torch.float16: (
        configs.float16_dynamic_qconfig,
        (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell),
    ),
    torch.quint8: (configs.float_qparams_weight_only_qconfig, (nn.EmbeddingBag, nn.Embedding)),
    torch.quint4x2: (configs.float_qparams_weight_only_qconfig_4bit, (nn.EmbeddingBag,)),
}
"""For each dtype of weights the configuration, and the classes of modules that are quantized by default."""


def quantize_dynamic(
    model: Any, qconfig_spec: Any = None, dtype: Any = torch.qint8, mapping: Any = None, inplace: bool = False
) -> Any:
    """A copy of a model whose weights are quantized; inputs of its layers are quantized as they come."""
    _warn()
    if dtype not in _OF_DTYPE:
        raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
    default, kinds = _OF_DTYPE[dtype]
    if qconfig_spec is None:
        qconfig_spec = dict.fromkeys(kinds, default)
    elif isinstance(qconfig_spec, set):
        qconfig_spec = dict.fromkeys(qconfig_spec, default)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return _convert_model(model, mapping or get_default_dynamic_quant_module_mappings(), True)


def prepare_qat(model: Any, mapping: Any = None, inplace: bool = False) -> Any:
    """A copy of a model, in training mode, whose modules round as their codes will."""
    _warn()
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    return _prepare_training(model, mapping, inplace)


def _prepare_training(model: Any, mapping: Any = None, inplace: bool = False) -> Any:
    mapping = mapping or get_default_qat_module_mappings()
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    _convert_model(model, mapping, True, remove_qconfig=False)
    return _prepare(model, True, None, set(mapping.values()))


def quantize_qat(model: Any, run_fn: Any, run_args: Any, inplace: bool = False) -> Any:
    """Prepare a model for training, train it by `run_fn`, and convert it."""
    _warn()
    model = model if inplace else copy.deepcopy(model)
    model.train()
    _prepare_training(model, inplace=True)
    run_fn(model, *run_args)
    return _convert_model(model, None, True)


def default_eval_fn(model: Any, calib_data: Iterable[Any]) -> None:
    """Let observers see the inputs of pairs of inputs and labels."""
    for data, _ in calib_data:
        model(data)
