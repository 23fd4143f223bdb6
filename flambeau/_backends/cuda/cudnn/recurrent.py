"""Recurrent networks by cuDNN's own interface for them: one call forward, two backward, whatever the layers and steps.

A network's parameters lie in one piece of memory, in the library's order; `Network.places` says where each of them is.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...._core.geometry.recurrence import GATES, Recurrence
from ..arrays.array import DeviceArray, from_host
from ..memory.workspace import scratch
from ..runtime.devices import PlanOfDevice
from ..runtime.driver import driver
from ..runtime.synchronization import HERE
from .convolutions import TYPES
from .descriptors import Refused, check, handle, library

_ITEMS = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
"""How many bytes an element has."""
_CELLS = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
_STANDARD = 0
_NO_BIAS, _TWO_BIASES = 0, 2
_AS_ALLOWED, _TENSOR_CORES, _WHOLE_NUMBERS = 0, 1, 3
"""How products are computed: TF32 where it is quicker, by tensor cores, in the operands' own precision."""
_PACKED = 1
_INFERENCE, _TRAINING = 0, 1
_ADDED = 0

_ARGUMENTS: dict[str, Sequence[Any]] = {
    "CreateRNNDescriptor": (c_void_p,),
    "CreateDropoutDescriptor": (c_void_p,),
    "CreateRNNDataDescriptor": (c_void_p,),
    "CreateTensorDescriptor": (c_void_p,),
    "DestroyRNNDataDescriptor": (c_void_p,),
    "DestroyTensorDescriptor": (c_void_p,),
    "SetDropoutDescriptor": (c_void_p, c_void_p, c_float, c_void_p, c_size_t, c_ulonglong),
    "SetRNNDescriptor_v8": (c_void_p, *[c_int] * 8, *[c_int] * 4, c_void_p, c_uint),
    "SetRNNDataDescriptor": (c_void_p, *[c_int] * 5, c_void_p, c_void_p),
    "SetTensorNdDescriptor": (c_void_p, c_int, c_int, c_void_p, c_void_p),
    "GetRNNWeightSpaceSize": (c_void_p,) * 3,
    "GetRNNTempSpaceSizes": (c_void_p, c_void_p, c_int, *[c_void_p] * 3),
    "GetRNNWeightParams": (c_void_p, c_void_p, c_int, c_size_t, c_void_p, c_int, *[c_void_p] * 4),
    "RNNForward": (
        c_void_p, c_void_p, c_int, *[c_void_p] * 11, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p,
    ),
    "RNNBackwardData_v8": (*[c_void_p] * 16, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p),
    "RNNBackwardWeights_v8": (
        c_void_p, c_void_p, c_int, *[c_void_p] * 7, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p,
    ),
}  # fmt: skip


@cache
def _function(name: str) -> Any:
    """A function of the library; it returns a status."""
    found = getattr(library(), f"cudnn{name}")
    found.argtypes = list(_ARGUMENTS[name])
    return found


def _call(name: str, *args: Any) -> None:
    check(_function(name)(*args))


def _made(kind: str) -> int:
    found = c_void_p()
    _call(f"Create{kind}Descriptor", byref(found))
    return found.value or 0


class Description(NamedTuple):
    """What tells a network from others, beside the lengths of the sequences."""

    cell: str
    dtype: str
    inputs: int
    width: int
    state: int
    """The width of the states: less than that of the cells if there is a projection."""
    layers: int
    directions: int
    has_biases: bool
    shortened: bool


class Network(PlanOfDevice):
    """A network as the library knows it."""

    def __init__(self, what: Description) -> None:
        self.what = what
        self._descriptor = _made("RNN")
        dropout = _made("Dropout")
        stream = driver().stream()
        _call("SetDropoutDescriptor", dropout, handle(stream), 0.0, None, 0, 0)
        kind = TYPES[what.dtype]
        wide = kind if what.dtype == "float64" else TYPES["float32"]
        math = _AS_ALLOWED if what.dtype in ("float32", "float64") else _TENSOR_CORES
        if what.dtype == "float32" and not what.shortened:
            math = _WHOLE_NUMBERS
        _call(
            "SetRNNDescriptor_v8", self._descriptor, _STANDARD, _CELLS[what.cell],
            _TWO_BIASES if what.has_biases else _NO_BIAS, what.directions - 1, 0, kind, wide, math, what.inputs,
            what.width, what.state, what.layers, dropout, 0,
        )  # fmt: skip
        size = c_size_t()
        _call("GetRNNWeightSpaceSize", handle(stream), self._descriptor, byref(size))
        self.weight_bytes = size.value
        self._places: list[int] | None = None
        self._sequences: dict[tuple[int, ...], _Sequences] = {}

    def places(self, weights: int) -> list[int]:
        """For each parameter, in PyTorch's order, how many bytes it is behind the beginning of all, at `weights`."""
        if self._places is None:
            self._places = [place for group in range(self._groups) for place in self._places_of(group, weights)]
        return self._places

    @property
    def _groups(self) -> int:
        return self.what.layers * self.what.directions

    def _places_of(self, group: int, weights: int) -> list[int]:
        what, gates = self.what, GATES[self.what.cell]
        item = _ITEMS[what.dtype]
        inputs = what.inputs if group < what.directions else what.directions * what.state
        found = []
        biases = []
        for first, columns in ((0, inputs), (gates, what.state)):
            matrix, bias = self._place(group, first, weights)
            for gate in range(1, gates):
                expected = matrix + gate * what.width * columns * item, bias + gate * what.width * item
                if self._place(group, first + gate, weights) != (expected if what.has_biases else (expected[0], bias)):
                    raise Refused("cuDNN: the parts of a parameter lie apart")
            found.append(matrix)
            biases.append(bias)
        if what.has_biases:
            found += biases
        if what.state != what.width:
            found.append(self._place(group, 2 * gates, weights)[0])
        return found

    def _place(self, group: int, number: int, weights: int) -> tuple[int, int]:
        """Where the matrix and the bias of one gate are."""
        matrix, bias = c_void_p(), c_void_p()
        shape, bias_shape = _made("Tensor"), _made("Tensor")
        _call(
            "GetRNNWeightParams", handle(driver().stream()), self._descriptor, group, self.weight_bytes, weights,
            number, shape, byref(matrix), bias_shape, byref(bias),
        )  # fmt: skip
        for each in (shape, bias_shape):
            _call("DestroyTensorDescriptor", each)
        return (matrix.value or weights) - weights, (bias.value or weights) - weights

    def sequences(self, recurrence: Recurrence) -> _Sequences:
        """Sequences of given lengths, as this network reads and writes them."""
        found = self._sequences.get(recurrence.sizes)
        if found is not None:
            return found
        found = _Sequences(self.what, self._descriptor, recurrence)
        if HERE.recording is not None:  # what it has of the device's memory goes with the recording
            HERE.recording.kept.append(found)
            return found
        if len(self._sequences) >= _MOST_SEQUENCES:
            self._sequences.clear()
        self._sequences[recurrence.sizes] = found
        return found


_MOST_SEQUENCES = 64


class _Sequences:
    """Descriptors of sequences of given lengths, and the memory that a network needs for them."""

    def __init__(self, what: Description, network: int, recurrence: Recurrence) -> None:
        self._network = network
        self._kind = TYPES[what.dtype]
        lengths = np.array(recurrence.lengths, np.int32)
        self._lengths: DeviceArray = from_host(lengths)
        steps, batch = len(recurrence.sizes), recurrence.sizes[0]
        self._data = []
        for width in (what.inputs, what.directions * what.state):
            self._data.append(_made("RNNData"))
            given = self._kind, _PACKED, steps, batch, width, lengths.ctypes.data, None
            _call("SetRNNDataDescriptor", self._data[-1], *given)
        groups = what.layers * what.directions
        self._states = [self._state((groups, batch, width)) for width in (what.state, what.width)]
        sizes = c_size_t(), c_size_t()
        self.sizes = []
        for mode in (_INFERENCE, _TRAINING):
            asked = handle(driver().stream()), network, mode, self._data[0], byref(sizes[0]), byref(sizes[1])
            _call("GetRNNTempSpaceSizes", *asked)
            self.sizes.append((sizes[0].value, sizes[1].value))

    def _state(self, shape: tuple[int, int, int]) -> int:
        made = _made("Tensor")
        sizes, strides = (c_int * 3)(*shape), (c_int * 3)(shape[1] * shape[2], shape[2], 1)
        _call("SetTensorNdDescriptor", made, self._kind, 3, ctypes.addressof(sizes), ctypes.addressof(strides))
        return made

    def __del__(self, _at_the_end: Callable[[], bool] = sys.is_finalizing) -> None:
        if _at_the_end():  # modules may be gone, and the process gives all back
            return
        for each in self._data:
            _function("DestroyRNNDataDescriptor")(each)
        for each in self._states:
            _function("DestroyTensorDescriptor")(each)

    @property
    def reserve_bytes(self) -> int:
        """What a derivative needs of the forward pass."""
        return self.sizes[_TRAINING][1]

    def forward(
        self, input: int, output: int, states: tuple[int, int], cells: tuple[int, int], weights: tuple[int, int],
        reserve: int,
    ) -> None:  # fmt: skip
        """Compute, given addresses: of states and cells the first and the last ones, of the weights their size too.

        Without a `reserve` nothing is kept for the derivative.
        """
        stream, mode = driver().stream(), _TRAINING if reserve else _INFERENCE
        work, kept = self.sizes[mode]
        place, memory = scratch(work, stream) if work else (0, None)
        _call(
            "RNNForward", handle(stream), self._network, mode, self._lengths.pointer, self._data[0], input,
            self._data[1], output, self._states[0], *states, self._states[1], *cells, weights[1], weights[0], work,
            place, kept, reserve,
        )  # fmt: skip
        del memory  # now the kernels that use it are in the queue

    def backward(
        self, inputs: tuple[int, int], outputs: tuple[int, int], states: tuple[int, int, int],
        cells: tuple[int, int, int], weights: tuple[int, int], of_weights: int, reserve: int,
    ) -> None:  # fmt: skip
        """The gradients: of the inputs, of first states and cells and, where there is memory for them, of the weights.

        Each with what it belongs to: input and its gradient, output and its gradient, of states and cells the first
        ones, the gradient of the last ones and that of the first ones.
        """
        stream = driver().stream()
        work, kept = self.sizes[_TRAINING]
        place, memory = scratch(work, stream) if work else (0, None)
        spaces = work, place, kept, reserve
        _call(
            "RNNBackwardData_v8", handle(stream), self._network, self._lengths.pointer, self._data[1], *outputs,
            self._data[0], inputs[1], self._states[0], *states, self._states[1], *cells, weights[1], weights[0],
            *spaces,
        )  # fmt: skip
        if of_weights:
            _call(
                "RNNBackwardWeights_v8", handle(stream), self._network, _ADDED, self._lengths.pointer, self._data[0],
                inputs[0], self._states[0], states[0], self._data[1], outputs[0], weights[1], of_weights, *spaces,
            )  # fmt: skip
        del memory
