"""What the files of this package share: ranges of codes, kinds of schemes, questions about a layer's configuration."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import flambeau as torch

from ..._core.names.absent import Table
from .quant_type import QuantType

NodePattern = Any
Pattern = Any

DEPRECATION_WARNING = (
    "torch.ao.quantization is deprecated in PyTorch, which points to the package torchao for eager quantization, "
    "for graphs and for export"
)


class MatchAllNode:
    """In a pattern: any node."""


__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "which functions codes pass through is said by the tables of backends",
        functions="check_node",
    )
    .parts()
)

_RANGES = {
    "qint8": (-128, 127), "int8": (-128, 127), "quint8": (0, 255), "uint8": (0, 255), "uint16": (0, 65535),
    "int16": (-(2**15), 2**15 - 1), "qint32": (-(2**31), 2**31 - 1), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip
_HALVED = {"qint8": (-64, 63), "int8": (-64, 63), "quint8": (0, 127), "uint8": (0, 127)}


def is_per_tensor(qscheme: Any) -> bool:
    """Whether a scheme has one scale for a tensor."""
    return qscheme in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Whether a scheme has a scale for each slice."""
    return qscheme in (
        torch.per_channel_affine,
        torch.per_channel_affine_float_qparams,
        torch.per_channel_symmetric,
    )


def calculate_qmin_qmax(
    quant_min: int | None, quant_max: int | None, has_customized_qrange: bool, dtype: Any, reduce_range: bool
) -> tuple[int, int]:
    """The smallest and the largest code: those given, or those of the dtype; half of them with `reduce_range`."""
    if has_customized_qrange:
        if dtype in (torch.qint32, torch.int32):
            low, high = _RANGES["qint32"]
        else:
            low, high = 0, 255
        if quant_min is not None and quant_max is not None:
            low, high = quant_min, quant_max
        if not 0 < high - low + 1 <= 2**32:
            raise AssertionError(
                "quantization range should be positive and not exceed the maximum bit range (=4294967296)."
            )
        return (low // 2, high // 2) if reduce_range else (low, high)
    if reduce_range and dtype.name in _HALVED:
        return _HALVED[dtype.name]
    return _RANGES.get(dtype.name, (0, 15))


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuse a range of codes that lacks zero or is empty."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")


def check_min_max_valid(min_val: Any, max_val: Any) -> bool:
    """Whether numbers were seen; warns if not, and refuses ends in the wrong order."""
    import warnings

    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
        return False
    if min_val.dim() == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
            return False
        if min_val > max_val:
            raise AssertionError(f"min {min_val} should be less than max {max_val}")
    elif (min_val > max_val).any():
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


def choose_parameters(
    low: Any, high: Any, quant_min: int, quant_max: int, dtype: Any, qscheme: Any, eps: Any, custom_range: bool
) -> tuple[Any, Any]:
    """Scales and zero points for numbers between the ends `low` and `high`, which are tensors."""
    least, most = low.clamp(max=0), high.clamp(min=0)
    zero_point = torch.zeros(least.shape, dtype=torch.int64)
    if qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric):
        scale = torch.maximum(torch.maximum(-least, most) / (float(quant_max - quant_min) / 2), eps)
        if dtype in (torch.uint8, torch.quint8):
            zero_point = zero_point.new_full(zero_point.shape, (quant_min + quant_max) // 2 if custom_range else 128)
        elif dtype is torch.uint16:
            zero_point = zero_point.new_full(zero_point.shape, 2**15)
    elif qscheme is torch.per_channel_affine_float_qparams:
        scale = (high - low) / float(quant_max - quant_min)
        scale = torch.where(scale > eps, scale, torch.ones_like(scale))
        zero_point = -1 * low / scale
    else:
        scale = torch.maximum((most - least) / float(quant_max - quant_min), eps)
        zero_point = (quant_min - torch.round(least / scale).to(torch.int)).clamp(quant_min, quant_max)
    return scale if scale.dim() else scale.reshape(1), zero_point if zero_point.dim() else zero_point.reshape(1)


def determine_qparams(
    min_val: Any,
    max_val: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    eps: Any,
    has_customized_qrange: bool,
    qscheme: Any = torch.per_tensor_affine,
) -> tuple[Any, Any]:
    """Scales in float64 and zero points for numbers between two ends."""
    if not check_min_max_valid(min_val, max_val):
        return torch.tensor([1.0]), torch.tensor([0])
    scale, zero_point = choose_parameters(
        min_val, max_val, quant_min, quant_max, dtype, qscheme, eps, has_customized_qrange
    )
    return scale.to(torch.double), zero_point if zero_point.dtype.is_floating_point else zero_point.to(torch.int64)


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """Scheme, dtype, scale, zero point and, as far as there are such, the axis and the range of codes."""
    scheme = getattr(observer_or_fake_quant, "qscheme", None)
    found: dict[str, Any] = {"qscheme": scheme, "dtype": observer_or_fake_quant.dtype}
    if scheme is None:
        return found
    if is_per_tensor(scheme):
        found["qscheme"] = torch.per_tensor_affine
    elif is_per_channel(scheme):
        if scheme is torch.per_channel_symmetric:
            found["qscheme"] = torch.per_channel_affine
        found["axis"] = observer_or_fake_quant.ch_axis
    else:
        raise RuntimeError(f"Unrecognized qscheme: {scheme}")
    found["scale"], found["zero_point"] = observer_or_fake_quant.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(observer_or_fake_quant, name):
            found[name] = getattr(observer_or_fake_quant, name)
    return found


def get_combined_dict(default_dict: dict[Any, Any], additional_dict: dict[Any, Any]) -> dict[Any, Any]:
    """A copy of the first with the entries of the second."""
    return {**default_dict, **additional_dict}


def to_underlying_dtype(qdtype: Any) -> Any:
    """The integers that hold the codes of a quantized type."""
    known = {
        torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32, torch.quint4x2: torch.uint8,
        torch.quint2x4: torch.uint8, torch.uint8: torch.uint8, torch.int8: torch.int8, torch.uint16: torch.uint16,
        torch.int16: torch.int16, torch.int32: torch.int32, torch.float8_e5m2: torch.float8_e5m2,
        torch.float8_e4m3fn: torch.float8_e4m3fn,
    }  # fmt: skip
    if qdtype not in known:
        raise AssertionError("Unsupported dtype: " + str(qdtype))
    return known[qdtype]


# ----- questions about a configuration -----------------------------------------------------------------------------


def activation_dtype(qconfig: Any) -> Any:
    """The type that activations are quantized to."""
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The type that weights are quantized to."""
    return qconfig.weight().dtype


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether scales of activations are found anew for each batch."""
    return bool(getattr(qconfig.activation(), "is_dynamic", False))


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether activations have codes of 8 bits."""
    return activation_dtype(qconfig) in (torch.quint8, torch.qint8, torch.uint8, torch.int8)


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether activations have codes of 32 bits."""
    return activation_dtype(qconfig) in (torch.qint32, torch.int32)


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantized with scales that were found before."""
    static = (torch.quint8, torch.qint8, torch.qint32, torch.float16, torch.uint8, torch.int8, torch.int16, torch.int32)
    return activation_dtype(qconfig) in (*static, torch.float8_e5m2, torch.float8_e4m3fn) and not (
        activation_is_dynamically_quantized(qconfig)
    )


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether weights are quantized at all."""
    own = weight_dtype(qconfig)
    quantized = (torch.quint8, torch.qint8, torch.float16, torch.quint4x2, torch.uint8, torch.int8, torch.int16)
    return own in (*quantized, torch.int32, torch.float8_e5m2, torch.float8_e4m3fn)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether weights have codes of 8 bits."""
    return weight_dtype(qconfig) in (torch.quint8, torch.qint8, torch.uint8, torch.int8)


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether a layer has weights of 8 bits and finds the scales of activations anew for each batch."""
    dtype, weight, dynamic = get_qconfig_dtypes(qconfig)
    return dtype in (torch.quint8, torch.uint8) and weight in (torch.qint8, torch.int8) and dynamic


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """The types of activations and of weights, and whether scales of activations are found anew."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to extract dtypes")
    activation = qconfig.activation()
    return activation.dtype, qconfig.weight().dtype, getattr(activation, "is_dynamic", False)


def get_quant_type(qconfig: Any) -> QuantType:
    """How a configuration quantizes."""
    if qconfig is None:
        raise AssertionError("qconfig must be provided to determine quant type")
    activation, weight = qconfig.activation(), qconfig.weight()
    static = (
        torch.quint8,
        torch.qint8,
        torch.quint4x2,
        torch.qint32,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
    )
    if weight.dtype in static:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        return QuantType.STATIC if activation.dtype in static else QuantType.WEIGHT_ONLY
    if weight.dtype is torch.float16:
        if getattr(activation, "is_dynamic", False):
            return QuantType.DYNAMIC
        if activation.dtype is torch.float16:
            return QuantType.STATIC
    raise Exception(
        f"Unrecognized dtype combination in get_quant_type: activation({activation.dtype}),weight({weight.dtype})"
    )


def get_swapped_custom_module_class(custom_module: Any, custom_module_class_mapping: Any, qconfig: Any) -> Any:
    """The class that takes the place of that of a user's module."""
    by_class = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    if type(custom_module) not in by_class:
        raise AssertionError(f"did not find corresponding observed module class for {type(custom_module)}")
    return by_class[type(custom_module)]


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """An attribute of attributes: "encoder.layer.weight"."""
    return functools.reduce(getattr, fqn.split("."), obj)


def get_fqn_to_example_inputs(model: Any, example_inputs: tuple[Any, ...]) -> dict[str, tuple[Any, ...]]:
    """The arguments that each part of a model gets, by its name; those given by name, and defaults, in their places."""
    names = {module: name for name, module in model.named_modules()}
    found: dict[str, tuple[Any, ...]] = {}

    def note(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        found[names[module]] = tuple(bound.arguments.values())

    handles = [module.register_forward_pre_hook(note, with_kwargs=True) for module in names]
    try:
        model(*example_inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def has_no_children_ignoring_parametrizations(module: Any) -> bool:
    """Whether a module has no parts other than its parametrizations."""
    names = [name for name, _ in module.named_children()]
    return not names or (names == ["parametrizations"])
