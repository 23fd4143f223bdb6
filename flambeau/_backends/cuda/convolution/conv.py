"""Convolutions on the device by cuDNN, or by generated kernels. None: it is not there, or does not do it.

The lowerings of the ops remember what a call needs by the shapes and strides of its operands: one look finds a plan and
the form of the result. The products themselves take operands that lie in any way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.geometry.moving_windows import (
    Geometry,
    Shape,
    correlated_sizes,
    gives_channels_last,
    strides_for,
    transposed_sizes,
)
from ...._core.process.gpu_choices import CHOICES
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays import ufuncs
from ..arrays.array import DeviceArray, form_of, nothing, of_form
from ..cudnn.convolutions import FORWARD, OF_INPUT, OF_WEIGHT, TYPES, Convolution
from ..cudnn.descriptors import Refused, library
from ..reductions.reduce import reduced
from ..runtime.plans import of_level
from ..runtime.synchronization import HERE
from . import depthwise, pointwise
from .batch_invariant import Plan, plan_of_samples

_ALIGNED = 15
_MOST_CALLS = 4096
_plans: dict[Any, Plan | None] = of_level({})


# ----- the ops --------------------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    """A product that needs no preparation when its like comes again."""

    plan: Plan
    form: Any
    """Of the result: arrays share it."""
    plan_with_bias: Callable[[int, int, int, int], None] | None
    """Adds a bias too, whose address comes last."""
    add_bias: Callable[[int, int, int], None] | None
    """Adds a bias to it, given the address of the result, once more, and that of the bias."""


_calls: dict[Any, _Call | None] = of_level({})


def convolution(
    input: DeviceArray, weight: DeviceArray, bias: DeviceArray | None, bias_sizes: Shape, stride: Shape, padding: Shape,
    dilation: Shape, transposed: bool, output_padding: Shape, groups: int,
) -> DeviceArray | None:  # fmt: skip
    """The convolution of `input` with `weight`, or its transpose, plus `bias`."""
    if REPRODUCIBILITY.product is not None:
        input, weight = _aligned(input), _aligned(weight)
    one, two = input.form, weight.form
    key = (
        one.shape, one.strides, one.dtype, two.shape, two.strides, two.dtype, stride, padding, dilation, transposed,
        output_padding, groups, _choices(),
    )  # fmt: skip
    try:
        call = _calls[key]
    except KeyError:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        geometry = Geometry(stride, padding, dilation, groups)
        call = _calls[key] = _prepared_forward(one, two, geometry, output_padding if transposed else None)
    place = input.pointer
    if call is None or (place | weight.pointer) & _ALIGNED:
        return None
    plan, form, plan_with_bias, add_bias = call
    result = of_form(form)
    made = result.pointer
    if plan_with_bias and bias is not None and bias.form.dtype is form.dtype and bias.form.flags.c_contiguous:
        plan_with_bias(place, weight.pointer, made, bias.pointer)
        return result
    if transposed:
        plan(made, weight.pointer, place)
    else:
        plan(place, weight.pointer, made)
    if bias is None:
        return result
    if add_bias is None or bias.form.dtype is not form.dtype or not bias.form.flags.c_contiguous:
        return _with_bias(result, bias)
    add_bias(made, made, bias.pointer)
    return result


def _aligned(array: DeviceArray) -> DeviceArray:
    """An array that begins where plans read: otherwise samples would take another way there."""
    return array.copy("K") if array.pointer & _ALIGNED else array


def _prepared_forward(input: Any, weight: Any, geometry: Geometry, output_padding: Shape | None) -> _Call | None:
    """`output_padding`: of a transposed convolution; None: it is none."""
    if output_padding is None:
        channels, sizes = weight.shape[0], correlated_sizes(input.shape[2:], weight.shape[2:], geometry)
    else:
        channels = weight.shape[1] * geometry.groups
        sizes = transposed_sizes(input.shape[2:], weight.shape[2:], geometry, output_padding)
    last = gives_channels_last(input, weight)
    form = _form((input.shape[0], channels, *sizes), input.dtype, last)
    if not _serves(input, weight) or not _lie_so((input, weight), last) or not form.size:
        return None
    plan_with_bias = None
    if output_padding is None:
        forms, geometry = _of_images((input, weight, form), geometry)
        plan = _plan(FORWARD, forms, geometry)
        if depthwise.fits(forms, geometry):
            plan_with_bias = depthwise.forward(forms, geometry, biased=True)
    else:
        plan = _plan(OF_INPUT, (form, weight, input), geometry)
    return None if plan is None else _Call(plan, form, plan_with_bias, _bias_adder(form))


def _bias_adder(form: Any) -> Callable[[int, int, int], None] | None:
    dtype = form.dtype
    added = ufuncs.function(np.add, None, dtype, dtype, dtype)
    shift = form_of((1, form.shape[1], *[1] * (form.ndim - 2)), dtype)
    return None if added is None else added.between([form], [form, shift])


_Gradient = tuple[Plan, Any]
"""The product that gives a gradient, and the form of this."""
_backward_calls: dict[Any, tuple[_Gradient | None, _Gradient | None] | None] = of_level({})


def convolution_backward(
    grad_output: DeviceArray, input: DeviceArray, weight: DeviceArray, stride: Shape, padding: Shape, dilation: Shape,
    transposed: bool, output_padding: Shape, groups: int, output_mask: tuple[bool, bool, bool],
) -> tuple[DeviceArray, DeviceArray, DeviceArray] | None:  # fmt: skip
    """The gradients of input, weight and bias; an empty array for each that `output_mask` does not ask for."""
    if REPRODUCIBILITY.product is not None:
        grad_output, input, weight = _aligned(grad_output), _aligned(input), _aligned(weight)
    zero, one, two = grad_output.form, input.form, weight.form
    key = (
        zero.shape, zero.strides, zero.dtype, one.shape, one.strides, one.dtype, two.shape, two.strides, two.dtype,
        stride, padding, dilation, transposed, groups, output_mask, _choices(),
    )  # fmt: skip
    try:
        calls = _backward_calls[key]
    except KeyError:
        if len(_backward_calls) >= _MOST_CALLS:
            _backward_calls.clear()
        geometry = Geometry(stride, padding, dilation, groups)
        calls = _backward_calls[key] = _prepared_backward(zero, one, two, geometry, transposed, output_mask)
    grad, x, w = grad_output.pointer, input.pointer, weight.pointer
    if calls is None or (grad | x | w) & _ALIGNED:
        return None
    of_input = of_weight = of_bias = nothing(zero.dtype)
    first, second = calls
    if first is not None:
        plan, form = first
        of_input = of_form(form)
        plan(*((grad, w, of_input.pointer) if transposed else (of_input.pointer, w, grad)))
    if second is not None:
        plan, form = second
        of_weight = of_form(form)
        plan(*((grad, of_weight.pointer, x) if transposed else (x, of_weight.pointer, grad)))
    if output_mask[2]:
        of_bias = _summed(grad_output)
    return of_input, of_weight, of_bias


def _prepared_backward(
    grad: Any, input: Any, weight: Any, geometry: Geometry, transposed: bool, mask: tuple[bool, bool, bool]
) -> tuple[_Gradient | None, _Gradient | None] | None:
    last = gives_channels_last(input, weight)
    if not _serves(input, weight) or grad.dtype != input.dtype or not _lie_so((grad, input, weight), last):
        return None
    found: list[_Gradient | None] = [None, None]
    forms = (grad, weight, input) if transposed else (input, weight, grad)
    if mask[0]:
        form = _form(input.shape, grad.dtype, last)
        product, given = (FORWARD, (grad, weight, form)) if transposed else (OF_INPUT, (form, weight, grad))
        plan = _plan(product, given, geometry)
        if plan is None:
            return None
        found[0] = plan, form
    if mask[1]:
        # As the weight itself lies: where a size is 1 that is more than one way, and a leaf's gradient lies as it does.
        form = form_of(weight.shape, grad.dtype, weight.strides)
        plan = _plan(OF_WEIGHT, (forms[0], form, forms[2]), geometry)
        if plan is None:
            return None
        found[1] = plan, form
    return found[0], found[1]


def _summed(grad: Any) -> DeviceArray:
    """The gradient of the bias."""
    axes = (0, *range(2, grad.form.ndim))
    found = reduced("add", grad, axes, grad.form.dtype, False)
    return np.add.reduce(grad, axis=axes) if found is None else found


def _with_bias(result: DeviceArray, bias: DeviceArray) -> DeviceArray:
    shift = bias.reshape(1, -1, *[1] * (result.form.ndim - 2))
    added: DeviceArray = ufuncs.call(np.add, (result, shift), result)
    return added


# ----- the products ---------------------------------------------------------------------------------------------------


def correlate(
    input: DeviceArray, weight: DeviceArray, bias: Any, output: Shape, geometry: Geometry, last: bool
) -> DeviceArray | None:
    """The convolution of `input` with `weight`, plus `bias`."""
    if not _serves(input.form, weight.form) or output != correlated_sizes(input.shape[2:], weight.shape[2:], geometry):
        return None
    shape = (input.shape[0], weight.shape[0], *output)
    result = _run(FORWARD, geometry, last, (input, weight, shape))
    return result if result is None or bias is None else _with_bias(result, bias)


def correlate_transposed(
    grad: DeviceArray, weight: DeviceArray, bias: Any, sizes: Shape, geometry: Geometry, last: bool
) -> DeviceArray | None:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    if not _serves(grad.form, weight.form) or grad.shape[2:] != correlated_sizes(sizes, weight.shape[2:], geometry):
        return None
    shape = (grad.shape[0], weight.shape[1] * geometry.groups, *sizes)
    result = _run(OF_INPUT, geometry, last, (shape, weight, grad))
    return result if result is None or bias is None else _with_bias(result, bias)


def weight_gradient(
    input: DeviceArray, grad: DeviceArray, kernel: Shape, geometry: Geometry, last: bool
) -> DeviceArray | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    if not _serves(input.form, grad.form) or grad.shape[2:] != correlated_sizes(input.shape[2:], kernel, geometry):
        return None
    shape = (grad.shape[1], input.shape[1] // geometry.groups, *kernel)
    return _run(OF_WEIGHT, geometry, last, (input, shape, grad))


def _run(product: int, geometry: Geometry, last: bool, operands: tuple[Any, Any, Any]) -> DeviceArray | None:
    """Computes the input, the weight or the output, whichever is given as a shape, from the other two."""
    dtype = next(each.form.dtype for each in operands if type(each) is DeviceArray)
    arrays = [
        _laid_out(each, last) if type(each) is DeviceArray else of_form(_form(each, dtype, last)) for each in operands
    ]
    plan = _plan(product, [each.form for each in arrays], geometry)
    if plan is None:
        return None
    plan(*[each.pointer for each in arrays])
    return next(made for made, given in zip(arrays, operands, strict=True) if type(given) is not DeviceArray)


# ----- plans, and how arrays must lie ---------------------------------------------------------------------------------


def _serves(first: Any, second: Any) -> bool:
    return bool(
        first.dtype == second.dtype and CHOICES.uses_library and name_of(first.dtype) in TYPES and first.size
        and second.size and 3 <= first.ndim <= 5 and library() is not None
    )  # fmt: skip


def _choices() -> tuple[bool, bool, bool, bool]:
    return CHOICES.uses_library, CHOICES.shortened_convolutions, CHOICES.tried, CHOICES.repeatable


_DEPTHWISE = {
    FORWARD: depthwise.forward, OF_INPUT: depthwise.input_gradient, OF_WEIGHT: depthwise.weight_gradient
}  # fmt: skip


def _plan(product: int, forms: Any, geometry: Geometry) -> Plan | None:
    """The plan for one of the products; `forms` are those of input, weight and output.

    Where a sample must give the same in any batch, it is computed as the plan for one sample does.
    """
    if product == OF_WEIGHT or REPRODUCIBILITY.product is None:
        return _plan_of_batch(product, forms, geometry)
    if any(form.size // form.shape[0] * form.itemsize & _ALIGNED for form in (forms[0], forms[2])):
        return None
    forms, geometry = _of_images(forms, geometry)
    if depthwise.fits(forms, geometry):  # an element has a thread of its own
        return _plan_of_batch(product, forms, geometry)
    key = HERE.ordinal, product, forms[0].dtype, *[(form.shape, form.strides) for form in forms], geometry, _choices()
    if key not in _plans_of_samples:
        _plans_of_samples[key] = plan_of_samples(product, forms, geometry)
    return _plans_of_samples[key]


_plans_of_samples: dict[Any, Plan | None] = of_level({})


def _plan_of_batch(product: int, forms: Any, geometry: Geometry) -> Plan | None:
    forms, geometry = _of_images(forms, geometry)
    dtype = forms[0].dtype
    key = product, dtype, *[(form.shape, form.strides) for form in forms], geometry, _choices()
    try:
        return _plans[key]
    except KeyError:
        pass
    plan: Plan | None
    if depthwise.fits(forms, geometry):
        plan = _DEPTHWISE[product](forms, geometry)
    elif product == OF_WEIGHT and REPRODUCIBILITY.level is not None and pointwise.fits(forms, geometry):
        plan = pointwise.weight_gradient(forms, geometry)
    else:
        try:
            plan = Convolution(product, name_of(dtype), forms, geometry)
        except Refused:
            plan = None
    _plans[key] = plan
    return plan


def _of_images(forms: Any, geometry: Geometry) -> tuple[Any, Geometry]:
    """A signal is an image of one line; images and volumes as they are."""
    if len(geometry.stride) > 1:
        return forms, geometry
    stride, padding, dilation, groups = geometry
    return [form[:, :, None] for form in forms], Geometry((1, *stride), (0, *padding), (1, *dilation), groups)


def _form(shape: Shape, dtype: Any, last: bool) -> Any:
    """The form of an array without gaps; with `last` its channels are innermost."""
    return form_of(shape, dtype, tuple([step * dtype.itemsize for step in strides_for(shape, last)]))


def _lie_so(forms: Any, last: bool) -> bool:
    """Whether arrays lie as `_laid_out` wants them, but for where they begin."""
    return all((_turned(form) if last else form).flags.c_contiguous for form in forms)


def _turned(form: Any) -> Any:
    """With the channels as the last dimension."""
    return form.transpose((0, *range(2, form.ndim), 1))


def _laid_out(array: DeviceArray, last: bool) -> DeviceArray:
    if _lie_so((array.form,), last) and not array.pointer & _ALIGNED:
        return array
    if not last:
        return array.copy()
    turned = array.transpose((0, *range(2, array.form.ndim), 1)).copy()
    return turned.transpose((0, turned.form.ndim - 1, *range(1, turned.form.ndim - 1)))
