"""Functions of three operands: interpolation, fused products and quotients, clamping."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.dtype import BOOL, C_NAMES, COMPLEX, FLOAT, LEGACY_NAMES, dtype
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.abstract.combinations import interpolated, scaled_product, scaled_quotient
from ..._dispatch.arguments.autocast_rules import WIDEST, on
from ..._dispatch.arguments.precision import in_single, only_where
from ..._dispatch.arguments.promotion import Number, Operand, is_number, result_type_of
from ..._dispatch.arguments.scalar import fitting, scaling
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.changes.direct_updates import add_product, add_quotient, approach, can_write, limit, write
from ..._dispatch.changes.exact_out import store_exactly
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.compiled_body import pointwise, pointwise_at_any_size
from ..._dispatch.dispatch import Array, Primitive, primitive
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import public
from .binary import conj


def _joined_shape_error(name: str, *operands: Any) -> RuntimeError:
    shapes = [list(each._array.shape) for each in operands if isinstance(each, Tensor)]
    return RuntimeError(
        f"The size of tensor a must match the size of tensor b: {name} of shapes "
        f"{', '.join(map(str, shapes))}. Sizes must be equal, or one of them 1."
    )


# ----- interpolation -----------------------------------------------------------------------------------------------


@primitive(
    "LerpBackward0",
    axes=ELEMENTS,
    self=lambda grad, weight: grad * (1 - conj(weight)),
    end=lambda grad, weight: grad * conj(weight),
)
@pointwise
@in_single
def _lerp_number(self: Array, end: Array, weight: Any) -> Array:
    weight = self.dtype.type(weight)
    return interpolated(self, end, weight, abs(weight) < 0.5)


@primitive(
    "LerpBackward1",
    axes=ELEMENTS,
    self=lambda grad, weight: grad * (1 - conj(weight)),
    end=lambda grad, weight: grad * conj(weight),
    weight=lambda grad, self, end: grad * conj(end - self),
)
@pointwise_at_any_size
@in_single
def _lerp_tensor(self: Array, end: Array, weight: Array) -> Array:
    near = np.abs(weight) < 0.5
    return np.where(near, interpolated(self, end, weight, True), interpolated(self, end, weight, False))


def _checked_weight(input: Tensor, end: Tensor, weight: Operand) -> Operand:
    """The weight in the dtype of the others, which must be one."""
    others = {"end": end, "weight": weight} if isinstance(weight, Tensor) else {"end": end}
    for name, each in others.items():
        if each.dtype is not input.dtype:
            if name == "weight" and not each._array.ndim:
                weight = each.to(input.dtype)
                continue
            ours, theirs = C_NAMES[input.dtype.name], C_NAMES[each.dtype.name]
            raise RuntimeError(f"expected dtype {ours} for `{name}` but got dtype {theirs}")
    return weight


@public(out=write_out)
def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """`input + weight * (end - input)`."""
    if not isinstance(end, Tensor):
        raise TypeError(f"lerp(): argument 'end' (position 2) must be Tensor, not {type(end).__name__}")
    kind = input._kind
    if end._kind is not kind or (isinstance(weight, Tensor) and weight._kind is not kind):
        weight = _checked_weight(input, end, weight)
    if input._kind.dtype.category < FLOAT:
        raise NotImplementedError(f'"lerp_kernel_scalar" not implemented for {LEGACY_NAMES[input.dtype]!r}')
    try:
        return (_lerp_tensor if isinstance(weight, Tensor) else _lerp_number)(input, end, weight)
    except ValueError:
        raise _joined_shape_error("lerp", input, end, weight) from None


@public()
def lerp_(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """In-place form of `lerp`."""
    if type(weight) is float and can_write(input, end):
        return write(approach(weight), input, end)
    return run_inplace(lerp, "lerp", input, (end, weight), {})


# ----- fused products and quotients --------------------------------------------------------------------------------


@primitive(
    "AddcmulBackward0",
    axes=ELEMENTS,
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(tensor2 * value),
    tensor2=lambda grad, tensor1, value: grad * conj(tensor1 * value),
)
@pointwise
@in_single
def _addcmul(self: Array, tensor1: Array, tensor2: Array, value: Any) -> Array:
    return self + scaled_product(tensor1, tensor2, self.dtype.type(value))


@primitive(
    "AddcdivBackward0",
    axes=ELEMENTS,
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(value / tensor2),
    tensor2=lambda grad, tensor1, tensor2, value: -grad * conj(value * tensor1 / (tensor2 * tensor2)),
)
@pointwise
@in_single
def _addcdiv(self: Array, tensor1: Array, tensor2: Array, value: Any) -> Array:
    return self + scaled_quotient(tensor1, tensor2, self.dtype.type(value))


_NUMBERS = (float, int)
_OLDER = ("input value tensor1 tensor2",)


def _factor(name: str, value: Any, common: dtype) -> Any:
    """`value`, a number of an unusual type, as one that tensors of dtype `common` can be multiplied by."""
    if isinstance(value, Tensor) and value._array.ndim == 0:
        value = value.item()
    if not is_number(value):
        raise TypeError(f"{name}(): argument 'value' must be Number, not {type(value).__name__}")
    return scaling(value, common)


def _fused(
    kernel: Primitive[..., Tensor], name: str, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any
) -> Tensor:
    if not type(input) is type(tensor1) is type(tensor2) is Tensor:
        for word, each in (("input", input), ("tensor1", tensor1), ("tensor2", tensor2)):
            if not isinstance(each, Tensor):
                raise TypeError(f"{name}(): argument '{word}' must be Tensor, not {type(each).__name__}")
    if type(value) not in _NUMBERS:
        value = _factor(name, value, result_type_of(input, tensor1, tensor2))
    if input._kind is tensor1._kind is tensor2._kind and input._kind.differentiable:
        try:
            return kernel(input, tensor1, tensor2, value)
        except ValueError:
            raise _joined_shape_error(name, input, tensor1, tensor2) from None
    common = result_type_of(input, tensor1, tensor2)
    if common.category == BOOL:
        raise NotImplementedError(f"\"{name}_cpu_out\" not implemented for 'Bool'")
    value = scaling(value, common)
    try:
        return kernel(
            input.to(common),
            tensor1.to(common),
            tensor2.to(common),
            value,
        )
    except ValueError:
        raise _joined_shape_error(name, input, tensor1, tensor2) from None


@public(out=write_out, older=_OLDER, autocast=on(cuda=WIDEST))
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`."""
    return _fused(_addcmul, "addcmul", input, tensor1, tensor2, value)


@public(older=_OLDER)
def addcmul_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """In-place form of `addcmul`."""
    if type(value) in _NUMBERS and can_write(input, tensor1, tensor2):
        return write(add_product(value), input, tensor1, tensor2)
    return run_inplace(addcmul, "addcmul", input, (tensor1, tensor2), {"value": value})


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value._kind.differentiable


@public(out=write_out, older=_OLDER, autocast=on(cuda=WIDEST))
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`."""
    if not _is_differentiable(tensor2) and result_type_of(tensor1, tensor2).category < FLOAT:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported. Use "
            "(input + value * torch.trunc(tensor1 / tensor2)) for the old integer division, or "
            "(input + value * tensor1 / tensor2) for a true one."
        )
    return _fused(_addcdiv, "addcdiv", input, tensor1, tensor2, value)


@public(older=_OLDER)
def addcdiv_(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """In-place form of `addcdiv`."""
    if type(value) in _NUMBERS and can_write(input, tensor1, tensor2):
        return write(add_quotient(value), input, tensor1, tensor2)
    return run_inplace(addcdiv, "addcdiv", input, (tensor1, tensor2), {"value": value})


# ----- clamping ----------------------------------------------------------------------------------------------------


def _clamped(self: Array, min: Any, max: Any) -> Array:
    if min is None:
        return np.minimum(self, max)
    if max is None:
        return np.maximum(self, min)
    return np.minimum(np.maximum(self, min), max)


def _within(self: Any, min: Any, max: Any) -> Any:
    if min is None:
        return self <= max
    return self >= min if max is None else (self >= min) & (self <= max)


def _clamp_gradient(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    return only_where(grad, _within(self, min, max))


def _lower_bound_gradient(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    return only_where(grad, self < min if max is None else (min < max) & (self < min))


def _upper_bound_gradient(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    return only_where(grad, self > max if min is None else (self > max) | (max < min))


_clamp_numbers = primitive("ClampBackward1", op_name="clamp_numbers", self=_clamp_gradient)(
    pointwise(in_single(_clamped))
)


@primitive("ClampBackward0", self=_clamp_gradient, min=_lower_bound_gradient, max=_upper_bound_gradient)
@pointwise
@in_single
def _clamp_tensors(self: Array, min: Array | None, max: Array | None) -> Array:
    return _clamped(self, min, max)


@primitive("ClampMinBackward0", self=lambda grad, self, min: only_where(grad, self >= min))
@pointwise
@in_single
def _clamp_min_number(self: Array, min: Any) -> Array:
    return np.maximum(self, min)


@primitive("ClampMaxBackward0", self=lambda grad, self, max: only_where(grad, self <= max))
@pointwise
@in_single
def _clamp_max_number(self: Array, max: Any) -> Array:
    return np.minimum(self, max)


@primitive(
    "ClampMinBackward1",
    self=lambda grad, self, min: only_where(grad, self >= min),
    min=lambda grad, self, min: only_where(grad, self < min),
)
@pointwise
@in_single
def _clamp_min_tensor(self: Array, min: Array) -> Array:
    return np.maximum(self, min)


@primitive(
    "ClampMaxBackward1",
    self=lambda grad, self, max: only_where(grad, self <= max),
    max=lambda grad, self, max: only_where(grad, self > max),
)
@pointwise
@in_single
def _clamp_max_tensor(self: Array, max: Array) -> Array:
    return np.minimum(self, max)


def _common(name: str, input: Tensor, *bounds: Any) -> list[Any]:
    """Input and bounds brought to their common dtype: tensors converted, numbers as they fit."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    given = [each for each in bounds if each is not None]
    for each in given:
        if not (isinstance(each, Tensor) or is_number(each)):
            raise TypeError(f"{name}(): a bound must be Tensor or Number, not {type(each).__name__}")
    common = result_type_of(input, *given)
    if common.category == COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")
    if common.category == BOOL and name == "clamp":
        raise NotImplementedError("\"clamp_cpu\" not implemented for 'Bool'")
    return [
        each if each is None else each.to(common) if isinstance(each, Tensor) else fitting(each, common)
        for each in (input, *bounds)
    ]


def _bounds_alike(low: Operand | None, high: Operand | None) -> tuple[Operand | None, Operand | None]:
    """The bounds of `clamp`; beside a number, a tensor without dimensions is one too."""
    if low is None or high is None or isinstance(low, Tensor) is isinstance(high, Tensor):
        return low, high
    bound = low if isinstance(low, Tensor) else high
    if not isinstance(bound, Tensor) or bound.dim() or bound.requires_grad:
        return low, high
    return (bound.item(), high) if bound is low else (low, bound.item())


def _write_limited(result: Tensor, out: Any, operands: tuple[Any, ...]) -> Tensor:
    """Between limits that are numbers, elements keep their dtype."""
    store = write_out if any(isinstance(each, Tensor) for each in operands[1:]) else store_exactly
    return store(result, out, operands)


@public("clip", out=_write_limited)
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Elements below `min` raised to it, elements above `max` lowered to it."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if (
        type(min) in _PLAIN_NUMBERS
        and type(max) in _PLAIN_NUMBERS
        and type(input) in PLAIN_TYPES
        and input._kind.dtype.is_floating_point
    ):
        return _clamp_numbers(input, min, max)
    input, min, max = _common("clamp", input, *_bounds_alike(min, max))
    if not (isinstance(min, Tensor) or isinstance(max, Tensor)):
        return _clamp_numbers(input, min, max)
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and not isinstance(bound, Tensor):
            raise TypeError(
                f"clamp(): argument '{name}' must be Tensor, not {type(bound).__name__}: the bounds are either both "
                "tensors or both numbers"
            )
    try:
        return _clamp_tensors(input, min, max)
    except ValueError:
        raise _joined_shape_error("clamp", input, min, max) from None


@public("clip_")
def clamp_(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """In-place form of `clamp`."""
    if type(min) in _PLAIN_NUMBERS and type(max) in _PLAIN_NUMBERS and min is not max and type(input) in PLAIN_TYPES:
        if can_write(input):
            return write(limit(min, max), input)
        common, low, high = _common("clamp", input, min, max)
        if common is input:
            return run_inplace(_clamp_numbers, "clamp", input, (low, high), {})
    return run_inplace(clamp, "clamp", input, (min, max), {})


_PLAIN_NUMBERS = frozenset((float, int, type(None)))


@public(inplace=True, out=_write_limited)
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Elements below `min` raised to it."""
    if type(min) is not float or not _is_differentiable(input):
        input, min = _common("clamp_min", input, min)
    return (_clamp_min_tensor if isinstance(min, Tensor) else _clamp_min_number)(input, min)


@public(inplace=True, out=_write_limited)
def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Elements above `max` lowered to it."""
    if type(max) is not float or not _is_differentiable(input):
        input, max = _common("clamp_max", input, max)
    return (_clamp_max_tensor if isinstance(max, Tensor) else _clamp_max_number)(input, max)
