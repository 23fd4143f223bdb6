"""Convolutions in which a sample gives the same in any batch, by cuDNN.

The library chooses a kernel by the sizes, among them that of the batch. Here the plan for one sample says what is
right: where a plan for a whole batch gives the same bits, tried with numbers, it is taken. Otherwise those for halves
of the batch are tried, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...._core.arrays.quick import name_of
from ...._core.geometry.moving_windows import Geometry
from ...._core.process.reproducibility import NotKept
from ..arrays.array import form_of
from ..cudnn.convolutions import FORWARD, Convolution, several
from ..cudnn.descriptors import Refused
from ..runtime.plans import of_level
from ..runtime.synchronization import HERE
from ..runtime.trials import Buffers, Call, first_alike

Plan = Callable[[int, int, int], None]
"""Computes one of the three products, given the addresses of input, weight and output."""

_NOMINAL = 16
"""So many samples a batch has for which the way is chosen that does for one sample and for many."""
_MOST = 6
"""So many ways are tried."""
_of_one: dict[Any, Plan | None] = of_level({})
_of_several: dict[Any, Plan] = of_level({})


def plan_of_samples(product: int, forms: Sequence[Any], geometry: Geometry) -> Plan | None:
    """The plan that computes the output or the input of a convolution of these forms: input, weight and output.

    None: the library has none.
    """
    one = _plan_of_one(product, forms, geometry)
    return one and _plan_of(product, forms, geometry, one)


def _plan_of(product: int, forms: Sequence[Any], geometry: Geometry, one: Plan) -> Plan:
    samples = forms[0].shape[0]
    if samples == 1:
        return one
    key = product, forms[0].dtype, *[(form.shape, form.strides) for form in forms], geometry
    found = _of_several.get(key)
    if found is None:
        found = _of_several[key] = _whole(product, forms, geometry, one) or _in_halves(product, forms, geometry, one)
    return found


def _whole(product: int, forms: Sequence[Any], geometry: Geometry, one: Plan) -> Plan | None:
    """A plan of the library's for the whole batch; None: there is none with these bits."""
    by_samples = _repeated(one, forms)
    reference = _by_result(product, by_samples)
    others = (_by_result(product, each) for each in _ways(product, forms, geometry, own_gpu=True))
    place = first_alike(_buffers(product, forms), reference, others, (Refused,))
    if place is None:
        return None
    whole, ordinal = _ways(product, forms, geometry, own_gpu=True)[place], HERE.ordinal

    def run(input: int, weight: int, output: int) -> None:
        (whole if HERE.ordinal == ordinal else by_samples)(input, weight, output)

    return run


def _in_halves(product: int, forms: Sequence[Any], geometry: Geometry, one: Plan) -> Plan:
    samples = forms[0].shape[0]
    middle = 1 << (samples - 1).bit_length() - 1  # sizes come again where they are powers of two
    sizes = [middle * (form.size // form.shape[0] * form.itemsize) for form in forms]
    first, rest = (_plan_of(product, _with_samples(forms, each), geometry, one) for each in (middle, samples - middle))

    def run(input: int, weight: int, output: int) -> None:
        first(input, weight, output)
        rest(input + sizes[0], weight, output + sizes[2])

    return run


def _plan_of_one(product: int, forms: Sequence[Any], geometry: Geometry) -> Plan | None:
    """For one sample: the library's first way whose bits its best way for a batch has, too."""
    single, several_samples = _with_samples(forms, 1), _with_samples(forms, _NOMINAL)
    dtype = forms[0].dtype
    key = product, dtype, *[(form.shape, form.strides) for form in single], geometry
    if key in _of_one:
        return _of_one[key]
    if HERE.recording is not None:
        raise NotKept("a convolution in a graph that is captured before it has run once")
    plan: Plan | None = None
    best = _MOST
    for each in _ways(product, single, geometry):
        if plan is None:
            plan = each
        reference = _by_result(product, _repeated(each, several_samples))
        others = (_by_result(product, way) for way in _ways(product, several_samples, geometry)[:best])
        place = first_alike(_buffers(product, several_samples), reference, others, (Refused,))
        if place is not None and place < best:
            plan, best = each, place
        if best == 0:
            break
    if plan is not None:
        plan = Convolution(product, name_of(dtype), single, geometry) if best == _MOST else plan
    _of_one[key] = plan
    return plan


def _ways(product: int, forms: Sequence[Any], geometry: Geometry, own_gpu: bool = False) -> list[Convolution]:
    try:
        return list(several(product, name_of(forms[0].dtype), forms, geometry, _MOST, own_gpu))
    except Refused:
        return []


def _with_samples(forms: Sequence[Any], samples: int) -> list[Any]:
    """The forms of input, weight and output for another number of samples."""
    input, weight, output = forms
    return [_batch_of(input, samples), weight, _batch_of(output, samples)]


def _batch_of(form: Any, samples: int) -> Any:
    each = form.size // form.shape[0] * form.itemsize
    return form_of((samples, *form.shape[1:]), form.dtype, (each, *form.strides[1:]))


def _repeated(one: Plan, forms: Sequence[Any]) -> Plan:
    """The plan for one sample, for each of a batch."""
    sizes = [form.size // form.shape[0] * form.itemsize for form in forms]
    samples = range(forms[0].shape[0])

    def run(input: int, weight: int, output: int) -> None:
        for sample in samples:
            one(input + sample * sizes[0], weight, output + sample * sizes[2])

    return run


def _buffers(product: int, forms: Sequence[Any]) -> Buffers:
    input, weight, output = (form.size for form in forms)
    result, operand = (output, input) if product == FORWARD else (input, output)
    return Buffers(forms[0].dtype, result, (weight, operand))


def _by_result(product: int, plan: Plan) -> Call:
    """The plan, given the addresses of the result, of the weight and of the other operand."""
    if product == FORWARD:
        return lambda result, weight, operand: plan(operand, weight, result)
    return lambda result, weight, operand: plan(result, weight, operand)
