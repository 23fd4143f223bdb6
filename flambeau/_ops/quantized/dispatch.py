"""Ops on quantized tensors: which there are, and how they run.

A quantized tensor's class is no plain one, so a public function that meets one comes here. Functions that only move
elements run on the codes. Functions of the numbers run on floats, and their results are quantized again as their first
argument is; PyTorch's kernels, which compute on codes, give the same or a neighbouring code. What PyTorch refuses is
refused here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..._core.device import CPU
from ..._core.dtype import LEGACY_NAMES
from ..._core.kind import kind_of_array
from ..._core.process.caller import warn_user
from ..._core.qscheme import per_tensor_affine
from ..._core.quantized import (
    QuantizedTensor,
    Quantizer,
    codes_of,
    dequantized,
    quantize_array,
    quantized_from_parts,
    quantized_tensor,
    same_meaning,
)
from ..._core.tensor import Tensor
from ..._dispatch.changes.history import end_change
from ..._dispatch.public.overrides import original_of
from ..sparse.dispatch import public_name
from .averages import average

Function = TypeVar("Function", bound=Callable[..., Any])


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BODIES: set[Callable[..., Any]] = set()
"""The bodies of public functions that take quantized tensors as they are."""

_MOVES = _names(
    "__getitem__ as_strided cat channel_shuffle nn.functional.channel_shuffle chunk clone concat concatenate "
    "contiguous cpu detach detach_ expand expand_as flatten flip index_select max_pool1d max_pool2d "
    "nn.functional.max_pool1d nn.functional.max_pool2d movedim narrow nn.functional.pixel_shuffle "
    "nn.functional.pixel_unshuffle permute pin_memory pixel_shuffle pixel_unshuffle repeat reshape reshape_as "
    "resize_ roll select slice_copy split squeeze squeeze_ stack swapaxes swapdims t t_ topk transpose transpose_ "
    "unbind unflatten unsafe_chunk unsafe_split unsqueeze unsqueeze_ view view_as sort max min amax amin alias "
    "empty_like is_same_size share_memory_ T mT H mH quantized_max_pool1d quantized_max_pool2d "
    "quantized_max_pool3d max_pool3d nn.functional.max_pool3d hsplit vsplit dsplit tensor_split atleast_1d "
    "atleast_2d atleast_3d ravel resolve_conj resolve_neg data ops.aten.slice unfold"
)
"""Functions that move elements, or choose among them by their order, which is that of the codes."""

_BY_NUMBER = _names(
    "relu relu_ nn.functional.relu nn.functional.relu_ clamp clamp_ nn.functional.hardtanh "
    "nn.functional.hardtanh_ nn.functional.leaky_relu nn.functional.leaky_relu_ nn.functional.gelu "
    "nn.functional.threshold nn.functional.threshold_ threshold threshold_ nn.functional.relu6 std masked_fill "
    "masked_fill_ nn.functional.pad constant_pad_nd fill_ ones_like full_like index_put index_put_ "
    "nn.functional.dropout dropout"
)
"""Functions of the numbers; the results are quantized as the argument is."""

_AVERAGES = _names(
    "mean nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d avg_pool1d "
    "adaptive_avg_pool1d nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d "
    "nn.functional.adaptive_avg_pool3d nn.functional.interpolate nn.functional.upsample"
)

_TESTS = _names("eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__")
_SAME_FOR_ALL = _names(
    "is_complex is_conj is_floating_point is_neg is_same_size is_tensor numel is_contiguous requires_grad_ "
    "storage is_shared is_inference is_pinned"
)
_FIXED = {
    "sigmoid": (1 / 256, 0, -128), "hardsigmoid": (1 / 256, 0, -128), "tanh": (2 / 256, 128, 0),
}  # fmt: skip
"""Functions whose results lie in a known range: the scale, and the zero points for quint8 and qint8."""


def about_quantized(body: Function) -> Function:
    """The decorated body of a public function takes quantized tensors itself."""
    _BODIES.add(body)
    return body


def run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a public function with a quantized tensor among its arguments, or refuse it."""
    function = original_of(function)
    body = getattr(function, "__wrapped__", None)
    if body in _BODIES:
        assert body is not None
        return body(*args, **kwargs)
    name = public_name(function)
    if name in _MOVES:
        return _on_codes(function, name, args, kwargs)
    if name in _BY_NUMBER:
        return _on_numbers(function, name, args, kwargs)
    if name in _AVERAGES:
        return average(function, name, args, kwargs)
    if name in _TESTS:
        return function(*map(_plain, args), **kwargs)
    if name in ("equal", "allclose"):
        return _equal(*args)
    if name == "copy_":
        return _copy(*args)
    if name in ("to", "type_as", "float", "double", "half", "int", "long"):
        return _to(function, args, kwargs)
    last = name.rpartition(".")[2].rstrip("_")
    if last in _FIXED:
        scale, unsigned, signed = _FIXED[last]
        own = _first(args)
        zero_point = unsigned if own.dtype.name == "quint8" else signed
        return requantized(function(dequantized(own)), Quantizer(per_tensor_affine, scale, zero_point), own)
    if name == "type":
        return f"torch.quantized.{LEGACY_NAMES[_first(args).dtype]}Tensor"
    if name in _SAME_FOR_ALL:
        return (body or function)(*args, **kwargs)
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend: {name} is not implemented for "
        "quantized tensors. Convert them first, with .dequantize()"
    )


def _found(values: Any) -> list[QuantizedTensor]:
    found: list[QuantizedTensor] = []
    for value in values:
        if isinstance(value, QuantizedTensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _found(value)
    return found


def _first(args: tuple[Any, ...]) -> QuantizedTensor:
    return _found(args)[0]


def _plain(value: Any) -> Any:
    """Floats in the place of a quantized tensor."""
    if isinstance(value, QuantizedTensor):
        return dequantized(value)
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def code_tensor(tensor: QuantizedTensor) -> Tensor:
    """An ordinary tensor of the codes, in the same memory and with the same version counter."""
    codes = codes_of(tensor)
    return Tensor._from_parts((codes, kind_of_array(codes.dtype, CPU), tensor._counter))


def requantized(numbers: Tensor, quantizer: Quantizer, like: QuantizedTensor) -> QuantizedTensor:
    """A quantized tensor of the dtype of another."""
    return quantized_tensor(quantize_array(numbers._array, quantizer, like.dtype), quantizer, like.dtype)


# ----- functions that move elements --------------------------------------------------------------------------------


def _on_codes(function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = _found((args, tuple(kwargs.values())))
    own = given[0]
    if not all(same_meaning(each._quantizer, own._quantizer) for each in given[1:]):
        warn_user(
            "All inputs of this cat operator must share the same quantization parameters: here they are brought to "
            "those of the first"
        )
        args = tuple(_alike(value, own) for value in args)

    def as_codes(value: Any) -> Any:
        if isinstance(value, QuantizedTensor):
            return code_tensor(value)
        if isinstance(value, (list, tuple)):
            return (list if isinstance(value, list) else tuple)(map(as_codes, value))
        return value

    result = function(*map(as_codes, args), **{key: as_codes(value) for key, value in kwargs.items()})
    quantizer = _moved(own, name, args) if own._quantizer.axis is not None else own._quantizer

    def as_quantized(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dtype is not own.dtype and value._array.dtype == codes_of(own).dtype:
            if value._array is codes_of(own) or (name.endswith("_") and not name.startswith("__")):
                own._array = value._array.view(own.dtype.numpy)
                return own
            made = quantized_from_parts((_records(value._array, own), own._kind, value._counter), quantizer)
            made._view = value._view
            return made
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(as_quantized, value))
        return type(value)(map(as_quantized, value)) if type(value) in (list, tuple) else value

    return as_quantized(result)


def _records(codes: Any, own: QuantizedTensor) -> Any:
    return np.lib.stride_tricks.as_strided(codes, codes.shape, codes.strides).view(own.dtype.numpy)


def _alike(value: Any, own: QuantizedTensor) -> Any:
    if isinstance(value, QuantizedTensor):
        return requantized(dequantized(value), own._quantizer, own)
    return type(value)(_alike(each, own) for each in value) if type(value) in (list, tuple) else value


def _moved(own: QuantizedTensor, name: str, args: tuple[Any, ...]) -> Quantizer:
    """The quantizer of the result, where slices have their own scales: the axis may move or go away."""
    quantizer = own._quantizer
    axis, ndim = quantizer.axis, own.dim()
    assert axis is not None
    if name in ("clone", "detach", "contiguous", "cpu", "share_memory_", "alias", "empty_like", "data"):
        return quantizer
    order = list(range(ndim))
    if name in ("transpose", "swapaxes", "swapdims", "t", "T"):
        first, second = (each % ndim for each in (args[1:3] if len(args) > 2 else (0, ndim - 1)))
        order[first], order[second] = order[second], order[first]
    elif name == "permute":
        given = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        order = [each % ndim for each in given]
    elif isinstance(args[-1], int) and axis == {"select": args[1], "__getitem__": 0}.get(name):
        slice_ = args[-1]
        return Quantizer(per_tensor_affine, float(quantizer.scale[slice_]), int(quantizer.zero_point[slice_]))
    else:
        raise RuntimeError(f"{name} only supports per-tensor quantized tensors: this one has scales along {axis}")
    return quantizer._replace(axis=order.index(axis))


# ----- functions of the numbers ------------------------------------------------------------------------------------


def _on_numbers(function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    own = _first((*args, *kwargs.values()))
    result = function(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})
    quantizer = own._quantizer
    if quantizer.per_channel and tuple(result.shape) != tuple(own.shape):
        raise RuntimeError(f"{name} only supports per-tensor quantized tensors: this one has scales for its slices")
    made = requantized(result, quantizer, own)
    if name.endswith("_") or kwargs.get("inplace"):
        codes_of(own)[...] = codes_of(made)
        end_change(own)
        return own
    return made


def _equal(left: Any, right: Any, *further: Any) -> bool:
    if not (isinstance(left, QuantizedTensor) and isinstance(right, QuantizedTensor)) or left.dtype is not right.dtype:
        return False
    return same_meaning(left._quantizer, right._quantizer) and np.array_equal(codes_of(left), codes_of(right))


def _copy(target: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(target, QuantizedTensor):
        raise RuntimeError("Copying from quantized Tensor to non-quantized Tensor is not allowed: use .dequantize()")
    if isinstance(source, QuantizedTensor):
        if source.dtype is not target.dtype:
            raise RuntimeError("Quantized copy only works with same dtypes")
        target._quantizer = source._quantizer
        codes_of(target)[...] = codes_of(source)
    else:
        if source.dtype.name != "float32":
            raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
        values = np.broadcast_to(source._array, target._array.shape)
        codes_of(target)[...] = quantize_array(values, target._quantizer, target.dtype)
    end_change(target)
    return target


def _to(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    wanted = [each for each in (*args[1:], *kwargs.values()) if type(each).__name__ in ("dtype", "_PackedDtype")]
    own = _first(args)
    if function.__name__ != "to" or any(each is not own.dtype for each in wanted):
        raise RuntimeError(
            "Creation of quantized tensor requires quantized dtype like torch.quint8: use .dequantize() for floats"
        )
    return own
