"""What turns the arrays of kernels into tensors, and asks whether tensors are part of a graph, for calls that are not
written for one op.

The lines are those of the short calls (`text.py`), written out here: to compile them would be a tenth of an import of
the package. A test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.backend import ARRAY_CLASSES
from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.tensor import INFERENCE, MULTI_OUTPUT, NO_GRAD, Tensor, View, new


def fresh(array: Any, source: Tensor) -> Tensor:
    """A new tensor over an array, on the device of a source."""
    kind = source._kind
    if type(array) is not kind.backend.array_class:
        array = kind.backend.asarray(array)
    # A sparse tensor has a kind of its own, and so has one whose signs are still to be taken.
    if type(kind) is not Kind or array.dtype is not kind.dtype.numpy:
        kind = kind.beside[array.dtype]
    modes = THREAD.modes
    output: Tensor = new(kind.tensor_type)
    output._array = array
    output._kind = kind
    output._counter = None if modes.inference else [0, None]
    output._view = None
    output._requires_grad = False
    output._grad_fn = None
    output._output_nr = 0
    output._grad = output._extra = None
    return output


def leaf(array: Any, kind: Kind) -> Tensor:
    """A new tensor over an array of a given kind."""
    modes = THREAD.modes
    output: Tensor = new(Tensor)
    output._array = array
    output._kind = kind
    output._counter = None if modes.inference else [0, None]
    output._view = None
    output._requires_grad = False
    output._grad_fn = None
    output._output_nr = 0
    output._grad = output._extra = None
    return output


def finished(op: Any, args: Sequence[Any], tensors: Sequence[Tensor], array: Any, kind: Kind) -> Tensor:
    """The result of a call of an op in plain modes, recorded if one of its tensors is part of a graph."""
    modes = THREAD.modes
    records = modes.grad and not modes.inference
    output: Tensor = new(Tensor)
    output._array = array
    output._kind = kind
    output._counter = None if modes.inference else [0, None]
    output._view = None
    output._requires_grad = False
    output._grad_fn = None
    output._output_nr = 0
    output._grad = output._extra = None
    if records:
        for each in tensors:
            if each._requires_grad or (each._view is not None and each.requires_grad):
                op.record_plainly(args, [output])
                break
    return output


def several(self: Any, arrays: Sequence[Any], source: Tensor, modes: Any, recorded: Any) -> Sequence[Tensor]:
    """What `Primitive.several_results` does: a tensor over each of several arrays, recorded if asked for."""
    if self.makes_windows:
        outputs = self._windows(arrays, source, modes)
    else:
        own, outputs = source._kind, []
        for array in arrays:
            if type(array) not in ARRAY_CLASSES:  # NumPy's reductions give numbers where no dimension is left
                array = own.backend.asarray(array)
            kind = own if array.dtype is own.dtype.numpy else own.beside[array.dtype]
            output: Tensor = new(Tensor)
            output._array = array
            output._kind = kind
            output._counter = None if modes.inference else [0, None]
            output._view = None
            output._requires_grad = False
            output._grad_fn = None
            output._output_nr = 0
            output._grad = output._extra = None
            outputs.append(output)
    if recorded is not None:
        self.record_plainly(recorded, outputs)
    return tuple(outputs)


def windows(self: Any, arrays: Sequence[Any], source: Tensor, modes: Any) -> list[Tensor]:
    """What `Primitive._windows` does: a tensor over each of several windows on the memory of a source."""
    kind, dtype, counter, origin = source._kind, source._array.dtype, source._counter, source._view
    if not self.is_view or counter is None:
        return [self._wrap(array, source, modes, True) for array in arrays]
    base, version = source if origin is None else origin.base, counter[0]
    creation = INFERENCE if modes.inference else MULTI_OUTPUT if modes.grad else NO_GRAD
    outputs = []
    for array in arrays:
        if array.dtype is not dtype:
            outputs.append(self._wrap(array, source, modes, True))
            continue
        output: Tensor = new(kind.tensor_type)
        output._array = array
        output._kind = kind
        output._counter = counter
        view = output._view = new(View)
        view.base = base
        view.version = version
        view.creation = creation
        output._requires_grad = False
        output._grad_fn = None
        output._output_nr = 0
        output._grad = output._extra = None
        outputs.append(output)
    return outputs


def any_needs_gradient(tensors: Sequence[Tensor]) -> bool:
    """Whether one of several tensors is part of a graph."""
    for each in tensors:  # noqa: SIM110  # a generator would be one more frame in most calls
        if each._requires_grad or (each._view is not None and each.requires_grad):
            return True
    return False
