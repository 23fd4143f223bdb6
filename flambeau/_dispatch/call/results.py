"""What turns the arrays of kernels into tensors, and asks whether tensors are part of a graph, for calls that are not
written for one op: the text is that of the short calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.backend import ARRAY_CLASSES
from ..._core.kind import Kind
from ..._core.tensor import MULTI_OUTPUT, Tensor
from ..gradients.recorder import written
from .text import NAMES, needs_gradient, new_tensor, new_window

_NAMES = {**NAMES, "ARRAY_CLASSES": ARRAY_CLASSES, "Kind": Kind, "MULTI_OUTPUT": MULTI_OUTPUT}


def _function(name: str, parameters: str, *lines: str) -> Callable[..., Any]:
    return written(name, parameters, lines, name.replace("_", " "), dict(_NAMES))


def _block(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


fresh: Callable[[Any, Tensor], Tensor] = _function(
    "fresh",
    "array, source",
    "kind = source._kind",
    "if type(array) is not kind.backend.array_class:",
    "    array = kind.backend.asarray(array)",
    # A sparse tensor has a kind of its own, and so has one whose signs are still to be taken.
    "if type(kind) is not Kind or array.dtype is not kind.dtype.numpy:",
    "    kind = kind.beside[array.dtype]",
    "modes = THREAD.modes",
    *new_tensor("array", "kind.tensor_type"),
    "return output",
)
"""A new tensor over an array, on the device of a source."""

leaf: Callable[[Any, Kind], Tensor] = _function(
    "leaf", "array, kind", "modes = THREAD.modes", *new_tensor("array"), "return output"
)
"""A new tensor over an array of a given kind."""

finished: Callable[[Any, Sequence[Any], Sequence[Tensor], Any, Kind], Tensor] = _function(
    "finished",
    "op, args, tensors, array, kind",
    "modes = THREAD.modes",
    *new_tensor("array"),
    "if modes.grad and not modes.inference:",
    "    for each in tensors:",
    f"        if {needs_gradient('each')}:",
    "            op.record_plainly(args, [output])",
    "            break",
    "return output",
)
"""The result of a call of an op in plain modes, recorded if one of its tensors is part of a graph."""

several: Any = _function(
    "several",
    "self, arrays, source, modes, recorded",
    "if self.makes_windows:",
    "    outputs = self._windows(arrays, source, modes)",
    "else:",
    "    own, outputs = source._kind, []",
    "    for array in arrays:",
    "        if type(array) not in ARRAY_CLASSES:",  # NumPy's reductions give numbers where no dimension is left
    "            array = own.backend.asarray(array)",
    "        kind = own if array.dtype is own.dtype.numpy else own.beside[array.dtype]",
    *_block(_block(new_tensor("array"))),
    "        outputs.append(output)",
    "if recorded is not None:",
    "    self.record_plainly(recorded, outputs)",
    "return tuple(outputs)",
)
"""`Primitive.several_results`."""

windows: Any = _function(
    "windows",
    "self, arrays, source, modes",
    "kind, dtype, counter, origin = source._kind, source._array.dtype, source._counter, source._view",
    "if not self.is_view or counter is None:",
    "    return [self._wrap(array, source, modes, True) for array in arrays]",
    "base, version = source if origin is None else origin.base, counter[0]",
    "creation = INFERENCE if modes.inference else MULTI_OUTPUT if modes.grad else NO_GRAD",
    "outputs = []",
    "for array in arrays:",
    "    if array.dtype is not dtype:",
    "        outputs.append(self._wrap(array, source, modes, True))",
    "        continue",
    *_block(new_window("array")),
    "    outputs.append(output)",
    "return outputs",
)
"""`Primitive._windows`."""

any_needs_gradient: Callable[[Sequence[Tensor]], bool] = _function(
    "any_needs_gradient",
    "tensors",
    "for each in tensors:",
    f"    if {needs_gradient('each')}:",
    "        return True",
    "return False",
)
"""Whether one of several tensors is part of a graph."""
