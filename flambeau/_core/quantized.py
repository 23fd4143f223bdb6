"""Quantized tensors: small integers that stand for floats, and the class of tensors that hold them.

The element of a quantized tensor is a code; `scale * (code - zero_point)` is the number that it stands for. The array
holds the codes as records of one field, named after the dtype: so no kernel can take them for ordinary integers, while
strides, views and storages are those of any array. The `Quantizer` says what the codes mean, for the whole tensor or
for each slice along an axis. `QuantizedTensor` is no plain class: every op hands it over to `__torch_function__`, and
`_ops/quantized` has the ops that quantized tensors know.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .backend import as_array
from .device import device
from .dtype import LEGACY_NAMES, NAMES, dtype
from .kind import kind_of
from .qscheme import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_tensor_affine,
    qscheme,
)
from .slots import SLOTS
from .tensor import Parts, Tensor, new_counter

QINT8, QUINT8, QINT32 = NAMES["qint8"], NAMES["quint8"], NAMES["qint32"]
QUINT4X2, QUINT2X4 = NAMES["quint4x2"], NAMES["quint2x4"]
LIMITS = {QINT8: (-128, 127), QUINT8: (0, 255), QINT32: (-(2**31), 2**31 - 1), QUINT4X2: (0, 15), QUINT2X4: (0, 3)}
"""The smallest and the largest code of each dtype."""
CODES = {QINT8: np.int8, QUINT8: np.uint8, QINT32: np.int32, QUINT4X2: np.uint8, QUINT2X4: np.uint8}
"""The integers that hold the codes; those of less than a byte have one each here."""
FROM_CODES = {np.dtype(np.int8): QINT8, np.dtype(np.uint8): QUINT8, np.dtype(np.int32): QINT32}


class EngineChoice:
    """Whose averages quantized tensors have at halves: those of PyTorch's engine for phones, or of its others."""

    is_for_phones = False


ENGINE = EngineChoice()


class Quantizer(NamedTuple):
    """What the codes of a tensor mean: numbers for the whole, or arrays with an element for each slice along `axis`."""

    scheme: qscheme
    scale: Any
    zero_point: Any
    axis: int | None = None

    @property
    def per_channel(self) -> bool:
        """Whether slices have their own scales."""
        return self.axis is not None

    def broadcastable(self, ndim: int) -> tuple[Any, Any]:
        """Scale and zero point in shapes that broadcast against the codes; scales in float32, as kernels use them."""
        if self.axis is None:
            return np.float32(self.scale), self.zero_point
        shape = [1] * ndim
        shape[self.axis] = -1
        return np.asarray(self.scale, np.float32).reshape(shape), np.asarray(self.zero_point).reshape(shape)

    def __deepcopy__(self, memo: dict[int, Any]) -> Quantizer:
        return Quantizer(self.scheme, copy.copy(self.scale), copy.copy(self.zero_point), self.axis)


def same_meaning(left: Quantizer, right: Quantizer) -> bool:
    """Whether codes mean the same under both."""
    return (
        left.axis == right.axis
        and np.array_equal(left.scale, right.scale)
        and np.array_equal(left.zero_point, right.zero_point)
    )


def quantize_array(values: Any, quantizer: Quantizer, target: dtype) -> Any:
    """The codes of an array of floats."""
    scale, zero_point = quantizer.broadcastable(values.ndim)
    low, high = LIMITS[target]
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = values.astype(np.float64) * (np.float32(1) / scale)
    if target is QINT32:
        scaled = np.rint(scaled.astype(np.float32)).astype(np.float64) + zero_point
    else:  # one rounding for product and sum, as by an instruction that does both
        scaled = np.rint((scaled + zero_point).astype(np.float32))
    return np.clip(np.nan_to_num(scaled, nan=low, posinf=high, neginf=low), low, high).astype(CODES[target])


def dequantize_array(codes: Any, quantizer: Quantizer) -> Any:
    """The floats for which codes stand."""
    scale, zero_point = quantizer.broadcastable(codes.ndim)
    wide = codes.astype(np.float32 if quantizer.scheme is per_channel_affine_float_qparams else np.int64)
    return ((wide - zero_point) * scale).astype(np.float32, copy=False)


class QuantizedTensor(Tensor):
    """A tensor of integers that stand for floats."""

    __slots__ = ("_quantizer",)
    __module__ = "flambeau"
    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not
    _is_plain_to_users = True
    _quantizer: Quantizer
    is_quantized = True

    @classmethod
    def __torch_function__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return SLOTS.run_on_quantized(func, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        """A tensor on this memory with a version counter of its own."""
        return quantized_from_parts((self._array, self._kind, new_counter()), self._quantizer)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, QuantizedTensor):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
                "type: one is quantized, the other is not"
            )
        self._array, self._kind, self._quantizer = value._array, value._kind, value._quantizer

    def tolist(self) -> NoReturn:
        """An error, as in PyTorch: ask for the floats or for the codes."""
        raise RuntimeError("load_scalar: invalid type: use .dequantize().tolist() or .int_repr().tolist()")

    def item(self) -> Any:
        """The float for which the only code stands."""
        return dequantized(self).item()

    def numpy(self, *, force: bool = False) -> NoReturn:
        """An error, as in PyTorch: NumPy has no such type."""
        name = LEGACY_NAMES[self.dtype]
        raise TypeError(f"Got unsupported ScalarType {name}: use .dequantize().numpy() or .int_repr().numpy()")

    def split(self, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """Parts along `dim`, which share memory."""
        length = self.shape[dim]
        sizes = split_size if isinstance(split_size, (list, tuple)) else [split_size] * -(-length // split_size)
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        return tuple(
            self.narrow(dim, start, min(size, length - start)) for start, size in zip(starts, sizes, strict=True)
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            parts = (self._array.copy(), self._kind, new_counter())
            memo[id(self)] = quantized_from_parts(parts, copy.deepcopy(self._quantizer))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any = 2) -> tuple[Any, ...]:
        quantizer = self._quantizer
        return rebuild_quantized, (self.dtype.name, codes_of(self).copy(), quantizer.scheme.name, *quantizer[1:])


def rebuild_quantized(name: str, codes: Any, scheme: str, scale: Any, zero_point: Any, axis: int | None) -> Any:
    """A tensor from what was pickled."""
    from . import qscheme as schemes

    return quantized_tensor(codes, Quantizer(getattr(schemes, scheme), scale, zero_point, axis), NAMES[name])


def codes_of(tensor: Tensor) -> Any:
    """The codes of a quantized tensor as integers, in the same memory."""
    return tensor._array.view(CODES[tensor.dtype])


def laid_out(codes: Any) -> Any:
    """Codes one after the other as the dimensions say, or with the channels of images last where they are."""
    strides = codes.strides
    if codes.ndim in (4, 5) and strides[1] == codes.itemsize == min(strides) and codes.shape[1] > 1:
        return np.moveaxis(_by_rows(np.moveaxis(codes, 1, -1)), -1, 1)
    return _by_rows(codes)


def _by_rows(array: Any) -> Any:
    return array if array.flags.c_contiguous else array.copy()


def dequantized(tensor: Any) -> Tensor:
    """A new tensor of the floats for which the codes stand."""
    array = dequantize_array(laid_out(codes_of(tensor)), tensor._quantizer)
    return Tensor._from_parts((as_array(array), kind_of(NAMES["float32"], tensor._kind.device), new_counter()))


def quantized_from_parts(parts: Parts, quantizer: Quantizer) -> QuantizedTensor:
    """A quantized tensor over a given array of records, kind and version counter."""
    made: Any = Tensor._from_parts(parts, QuantizedTensor)
    tensor: QuantizedTensor = made
    tensor._quantizer = quantizer
    return tensor


def quantized_tensor(
    codes: Any, quantizer: Quantizer, dtype: dtype | None = None, place: device | None = None
) -> QuantizedTensor:
    """A tensor with an array of integers as its codes, which it takes over."""
    from .device import CPU

    own = FROM_CODES[codes.dtype] if dtype is None else dtype
    records = as_array(codes).view(own.numpy)
    return quantized_from_parts((records, kind_of(own, place or CPU), new_counter()), quantizer)


def per_tensor(scale: float, zero_point: int) -> Quantizer:
    """The quantizer of a whole tensor."""
    return Quantizer(per_tensor_affine, float(scale), int(zero_point))


def per_channel(scales: Any, zero_points: Any, axis: int) -> Quantizer:
    """The quantizer of slices along an axis; zero points of floats make a scheme of their own."""
    if zero_points.dtype.kind == "f":
        scheme = per_channel_affine_float_qparams
        return Quantizer(scheme, scales.astype(np.float32), zero_points.astype(np.float32), axis)
    return Quantizer(per_channel_affine, scales.astype(np.float64), zero_points.astype(np.int64), axis)
