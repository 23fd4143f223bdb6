"""Convolutions of a few elements: plain loops over strided arrays, one call for what would be a dozen of NumPy's.

Arrays are (batch, channels, *sizes), weights (outputs, inputs of one group, *kernel), in any layout. The table of a
geometry holds, for each spatial dimension, strides, then paddings, then dilations. Sums are kept in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ..arrays import Arguments, ArrayArgument
from ..build import Builder, Value
from ..kernel import kernel
from ..types import F64, I64, SCALARS, Scalar


class _Array:
    """An array with what the loops need of it at hand."""

    def __init__(self, argument: ArrayArgument, rank: int) -> None:
        self.data = argument.data
        self.sizes = [argument.size(dim) for dim in range(rank + 2)]
        self.strides = [argument.stride(dim) for dim in range(rank + 2)]

    def at(self, *places: Value) -> Value:
        """The address of the element, or the part, at the first `places`."""
        address = self.data
        for place, stride in zip(places, self.strides, strict=False):
            address = address + place * stride
        return address


class _Geometry:
    def __init__(self, b: Builder, table: Value, rank: int) -> None:
        def entry(line: int, dim: int) -> Value:
            return b.load_raw(b.offset(table, line * rank + dim, I64), I64)

        self.stride, self.padding, self.dilation = ([entry(line, dim) for dim in range(rank)] for line in range(3))


def _read(b: Builder, address: Value, scalar: Scalar) -> Value:
    return b.convert(b.load(address, scalar), F64)


def _write(b: Builder, address: Value, scalar: Scalar, value: Value) -> None:
    b.store(address, scalar, 0, b.convert(value, scalar.compute))


def _loops(b: Builder, stack: ExitStack, sizes: Sequence[Value]) -> list[Value]:
    """Nested loops over all places of an array of `sizes`, until the stack is closed."""
    return [stack.enter_context(b.loop(0, size)) for size in sizes]


@kernel
def correlate_few(b: Builder, arguments: Arguments, dtype: str, rank: int, biased: bool) -> None:
    """(out, input, weight, table, outputs of a group[, bias]): the convolution."""
    scalar = SCALARS[dtype]
    out, source, weight = (_Array(arguments.array(number), rank) for number in range(3))
    geometry = _Geometry(b, arguments.array(3).data, rank)
    outputs = arguments.integer(4)
    bias = arguments.array(5) if biased else None
    with ExitStack() as stack:
        sample, output, *place = _loops(b, stack, out.sizes)
        total = b.variable(F64, 0.0 if bias is None else _read(b, bias.data + output * bias.stride(0), scalar))
        first = output // outputs * weight.sizes[1]

        def along(dim: int, element: Value, factor: Value) -> None:
            if dim == rank:
                total.add(_read(b, element, scalar) * _read(b, factor, scalar))
                return
            with b.loop(0, weight.sizes[2 + dim]) as tap:
                at = place[dim] * geometry.stride[dim] - geometry.padding[dim] + tap * geometry.dilation[dim]
                with b.when((at >= 0) & (at < source.sizes[2 + dim])):
                    along(dim + 1, element + at * source.strides[2 + dim], factor + tap * weight.strides[2 + dim])

        with b.loop(0, weight.sizes[1]) as channel:
            along(0, source.at(sample, first + channel), weight.at(output, channel))
        _write(b, out.at(sample, output, *place), scalar, total.value)


@kernel
def correlate_transposed_few(b: Builder, arguments: Arguments, dtype: str, rank: int, biased: bool) -> None:
    """(out, grad, weight, table, outputs of a group[, bias]): the transpose with respect to the input."""
    scalar = SCALARS[dtype]
    out, grad, weight = (_Array(arguments.array(number), rank) for number in range(3))
    geometry = _Geometry(b, arguments.array(3).data, rank)
    outputs = arguments.integer(4)
    bias = arguments.array(5) if biased else None
    with ExitStack() as stack:
        sample, channel, *place = _loops(b, stack, out.sizes)
        total = b.variable(F64, 0.0 if bias is None else _read(b, bias.data + channel * bias.stride(0), scalar))
        group = channel // weight.sizes[1]
        inner = channel - group * weight.sizes[1]

        def along(dim: int, element: Value, factor: Value) -> None:
            if dim == rank:
                total.add(_read(b, element, scalar) * _read(b, factor, scalar))
                return
            # From the first place whose window reaches so far to the last one: few have to be looked at.
            stride, dilation, taps = geometry.stride[dim], geometry.dilation[dim], weight.sizes[2 + dim]
            reached = place[dim] + geometry.padding[dim]
            first = b.larger((reached - (taps - 1) * dilation + stride - 1) // stride, 0)
            with b.loop(first, b.smaller(reached // stride + 1, grad.sizes[2 + dim])) as at:
                distance = reached - at * stride
                tap = distance // dilation
                with b.when(tap * dilation == distance):
                    along(dim + 1, element + at * grad.strides[2 + dim], factor + tap * weight.strides[2 + dim])

        with b.loop(0, outputs) as number:
            output = group * outputs + number
            along(0, grad.at(sample, output), weight.at(output, inner))
        _write(b, out.at(sample, channel, *place), scalar, total.value)


@kernel
def weigh_few(b: Builder, arguments: Arguments, dtype: str, rank: int) -> None:
    """(out, input, grad, table, outputs of a group): the gradient of the weight."""
    scalar = SCALARS[dtype]
    out, source, grad = (_Array(arguments.array(number), rank) for number in range(3))
    geometry = _Geometry(b, arguments.array(3).data, rank)
    outputs = arguments.integer(4)
    with ExitStack() as stack:
        output, inner, *tap = _loops(b, stack, out.sizes)
        total = b.variable(F64, 0.0)
        channel = output // outputs * out.sizes[1] + inner

        def along(dim: int, element: Value, factor: Value) -> None:
            if dim == rank:
                total.add(_read(b, element, scalar) * _read(b, factor, scalar))
                return
            with b.loop(0, grad.sizes[2 + dim]) as place:
                at = place * geometry.stride[dim] - geometry.padding[dim] + tap[dim] * geometry.dilation[dim]
                with b.when((at >= 0) & (at < source.sizes[2 + dim])):
                    along(dim + 1, element + at * source.strides[2 + dim], factor + place * grad.strides[2 + dim])

        with b.loop(0, grad.sizes[0]) as sample:
            along(0, source.at(sample, channel), grad.at(sample, output))
        _write(b, out.at(output, inner, *tap), scalar, total.value)
