"""The three products of convolutions on the device by cuDNN. None: it is not there, or does not do it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._core.arrays.quick import name_of
from ..._core.geometry.moving_windows import Geometry, Shape
from ..._core.process.gpu_choices import CHOICES
from . import cudnn
from .array import DeviceArray, empty

_FORWARD, _OF_INPUT, _OF_WEIGHT = "conv_fprop", "conv_dgrad", "conv_wgrad"
_NAMES = {
    _FORWARD: ("image", "weight", ""), _OF_INPUT: ("", "filter", "loss"), _OF_WEIGHT: ("image", "", "loss"),
}  # fmt: skip
"""For each product what cuDNN calls input, weight and output, as far as they are given."""
_RESULTS = {_FORWARD: 3, _OF_INPUT: 1, _OF_WEIGHT: 2}
"""Which of them is computed."""
_plans: dict[Any, cudnn.Plan | None] = {}


class _Call(NamedTuple):
    """A call that needs no preparation when its like comes again: a plan, and shape and strides of the result."""

    plan: cudnn.Plan
    numbers: tuple[int, int, int]
    """Of the first operand, of the second and of the result in the plan."""
    shape: Shape
    strides: Shape


_calls: dict[Any, _Call] = {}


def _remembered(key: Any, first: DeviceArray, second: DeviceArray) -> DeviceArray | None:
    call = _calls.get(key)
    if call is None:
        return None
    result = empty(call.shape, first.form.dtype, call.strides)
    one, two, three = call.numbers
    call.plan({one: first.pointer, two: second.pointer, three: result.pointer})
    return result


def _key(product: str, first: DeviceArray, second: DeviceArray, *rest: Any) -> Any:
    one, two = first.form, second.form
    return product, one.dtype, one.shape, one.strides, two.dtype, two.shape, two.strides, rest, _choices()


_TYPES = frozenset(cudnn.TYPES) - {"float64"}
"""In float64 the front end hands the library factors of float32, and results are not written."""


def correlate(
    input: DeviceArray, weight: DeviceArray, bias: Any, output: Shape, geometry: Geometry, last: bool
) -> DeviceArray | None:
    """The convolution of `input` with `weight`, plus `bias`."""
    key = _key(_FORWARD, input, weight, output, geometry, last)
    result = _remembered(key, input, weight)
    if result is not None:
        return result if bias is None else _with_bias(result, bias)
    if not _serves(input, weight) or output != _sizes(input.shape[2:], weight.shape[2:], geometry):
        return None
    shape = (input.shape[0], weight.shape[0], *output)
    result = _run(_FORWARD, key, geometry, last, input=input, weight=weight, output=shape)
    return result if result is None or bias is None else _with_bias(result, bias)


def spread(
    grad: DeviceArray, weight: DeviceArray, bias: Any, sizes: Shape, geometry: Geometry, last: bool
) -> DeviceArray | None:
    """The transpose of `correlate` with respect to its input, of spatial `sizes`, plus `bias`."""
    key = _key(_OF_INPUT, weight, grad, sizes, geometry, last)
    result = _remembered(key, weight, grad)
    if result is not None:
        return result if bias is None else _with_bias(result, bias)
    if not _serves(grad, weight) or grad.shape[2:] != _sizes(sizes, weight.shape[2:], geometry):
        return None
    shape = (grad.shape[0], weight.shape[1] * geometry.groups, *sizes)
    result = _run(_OF_INPUT, key, geometry, last, input=shape, weight=weight, output=grad)
    return result if result is None or bias is None else _with_bias(result, bias)


def weight_gradient(
    input: DeviceArray, grad: DeviceArray, kernel: Shape, geometry: Geometry, last: bool
) -> DeviceArray | None:
    """The gradient of the weight of `correlate`, from the gradient of its result."""
    key = _key(_OF_WEIGHT, input, grad, kernel, geometry, last)
    result = _remembered(key, input, grad)
    if result is not None:
        return result
    if not _serves(input, grad) or grad.shape[2:] != _sizes(input.shape[2:], kernel, geometry):
        return None
    shape = (grad.shape[1], input.shape[1] // geometry.groups, *kernel)
    return _run(_OF_WEIGHT, key, geometry, last, input=input, weight=shape, output=grad)


def _serves(first: DeviceArray, second: DeviceArray) -> bool:
    same = first.form.dtype == second.form.dtype
    return bool(
        same and CHOICES.uses_library and name_of(first.form.dtype) in _TYPES and first.form.size and second.form.size
        and 3 <= first.form.ndim <= 5 and cudnn.library() is not None
    )  # fmt: skip


def _sizes(input: Shape, kernel: Shape, geometry: Geometry) -> Shape:
    """The sizes of the result of a convolution."""
    given = zip(input, kernel, geometry.stride, geometry.padding, geometry.dilation, strict=True)
    return tuple([(size + 2 * pad - gap * (window - 1) - 1) // step + 1 for size, window, step, pad, gap in given])


def _with_bias(result: Any, bias: DeviceArray) -> DeviceArray:
    shift: Any = bias.reshape(1, -1, *[1] * (result.ndim - 2))
    added: DeviceArray = np.add(result, shift, out=result)
    return added


def _run(product: str, call: Any, geometry: Geometry, last: bool, **operands: Any) -> DeviceArray | None:
    """Compute the operand that is given as a shape from the other two; what is alike is known as `call` from then on.

    Nothing is remembered of operands that had to be laid out in another way.
    """
    flat = len(geometry.stride) == 1  # a signal is an image of one line
    dtype = next(each.form.dtype for each in operands.values() if type(each) is DeviceArray)
    arrays: dict[str, DeviceArray] = {}
    for name, each in operands.items():
        array = _laid_out(each, last) if type(each) is DeviceArray else _empty(each, dtype, last)
        arrays[name] = array
    forms = [(_as_image(each) if flat else each).form for each in arrays.values()]
    key = product, dtype, *[(form.shape, form.strides) for form in forms], geometry, _choices()
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plans[key] = _planned(product, forms, geometry)
    if plan is None:
        return None
    plan({number: each.pointer for number, each in enumerate(arrays.values(), 1)})
    result = list(arrays.values())[_RESULTS[product] - 1]
    if all(arrays[name] is each for name, each in operands.items() if type(each) is DeviceArray):
        one, two = (number for number in (1, 2, 3) if number != _RESULTS[product])
        form = result.form
        _calls[call] = _Call(plan, (one, two, _RESULTS[product]), form.shape, form.strides)
    return result


def _choices() -> tuple[bool, ...]:
    return CHOICES.uses_library, CHOICES.shortened_convolutions, CHOICES.measured, CHOICES.deterministic


def _planned(product: str, forms: list[Any], geometry: Geometry) -> cudnn.Plan | None:
    """The plan for one of the products; `forms` are those of input, weight and output."""
    options = {"stride": list(geometry.stride), "padding": list(geometry.padding), "dilation": list(geometry.dilation)}
    if forms[0].ndim > 2 + len(geometry.stride):
        options = {name: [0 if name == "padding" else 1, *each] for name, each in options.items()}

    def describe(graph: Any) -> None:
        result = _RESULTS[product]
        given = {
            name: graph.tensor(dim=list(form.shape), stride=_steps(form), uid=number)
            for number, (name, form) in enumerate(zip(_NAMES[product], forms, strict=True), 1)
            if number != result
        }
        made = getattr(graph, product)(**given, **options)
        form = forms[result - 1]
        made.set_output(True).set_uid(result).set_dim(list(form.shape)).set_stride(_steps(form))

    try:
        make = cudnn.MeasuredPlan if CHOICES.measured else cudnn.Plan
        return make(name_of(forms[0].dtype), CHOICES.shortened_convolutions, describe)
    except cudnn.Refused:
        return None


def _steps(form: Any) -> list[int]:
    return [step // form.itemsize for step in form.strides]


def _as_image(array: DeviceArray) -> DeviceArray:
    return array[:, :, None]


def _order(ndim: int) -> tuple[int, ...]:
    """The dimensions in memory, channels innermost."""
    return (0, *range(2, ndim), 1)


def _laid_out(array: DeviceArray, last: bool) -> DeviceArray:
    if not last:
        return array if array.form.flags.c_contiguous else array.copy()
    turned = array.transpose(_order(array.ndim))
    if turned.form.flags.c_contiguous:
        return array
    return _back(turned.copy())


def _empty(shape: Shape, dtype: Any, last: bool) -> DeviceArray:
    if not last:
        return empty(shape, dtype)
    return _back(empty(tuple([shape[axis] for axis in _order(len(shape))]), dtype))


def _back(turned: DeviceArray) -> DeviceArray:
    return turned.transpose((0, turned.ndim - 1, *range(1, turned.ndim - 1)))
