"""Generated kernels on stand-ins: the functions of the backend's families, which write their calls to the schedule."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._backends.cpu.convolution import tiers as convolution
from ..._backends.cpu.lowerings import CONVOLUTIONS, KERNELS
from ..._backends.cpu.memory.workspace import Workspace
from ..._backends.tiers import generated, library
from ..._core.arrays.abstract import empty_meta
from ..._core.backend import FUNCTIONS, HOST_CLASSES, Functions
from .schedule import Buffer, Launch, Place, Schedule, Untraceable
from .stand_in import StandIn, copied


class Generated:
    """An elementwise body that runs compiled, whatever the tensors' size."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def many(self, *operands: Any) -> tuple[StandIn, ...]:
        """The results for arrays without gaps, and numbers."""
        arrays = [each for each in operands if type(each) is StandIn]
        if not all(type(each) in (StandIn, int, float) for each in operands):
            raise Untraceable("operands that are known")
        schedule, shape = arrays[0].schedule, np.broadcast_shapes(*[each.shape for each in arrays])
        model = next((each for each in arrays if each.shape == shape), None)
        if model is None or all(each.flags.c_contiguous for each in arrays):
            made = [schedule.new(shape, dtype) for dtype in self._compiled.results]
        elif 0 in model.strides:
            raise Untraceable("operands that are spread out")
        else:
            laid = [np.empty_like(model.place.header, dtype) for dtype in self._compiled.results]
            made = [schedule.new(shape, each.dtype, each.strides) for each in laid]
        given = tuple([each.place if type(each) is StandIn else each for each in operands])
        call = self._compiled.into, (tuple(made), given, None), None
        places = [each for each in given if type(each) is Place]
        schedule.launches.append(Launch((call,), places, made, self._compiled.program, given))
        return tuple([StandIn(schedule, each) for each in made])

    def unary(self, x: Any) -> StandIn:
        """The result for one array."""
        return self.many(x)[0]

    def binary(self, x: Any, y: Any) -> StandIn:
        """The result for two operands."""
        return self.many(x, y)[0]


def _pointwise(body: Any, operands: Sequence[Any], result: np.dtype[Any]) -> Generated | None:
    compiled = generated("pointwise").pointwise(body, operands, result)
    return None if compiled is None else Generated(compiled)


class _Written:
    """Memory and kernels of one call of a lowering, written down."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._made: set[Buffer] = set()

    def empty(self, shape: Any, dtype: Any, strides: Any = None) -> StandIn:
        """A new array of the schedule, not initialised."""
        place = self._schedule.new((shape,) if type(shape) is int else shape, dtype, strides)
        self._made.add(place.buffer)
        return StandIn(self._schedule, place)

    def zeros(self, shape: Any, dtype: Any) -> StandIn:
        """A new array, filled with zeros again and again."""
        made = self.empty(shape, dtype)
        self._schedule.fill(made.place, 0)
        return made

    def arranged(self, shape: Any, strides: Any, dtype: Any) -> StandIn:
        """A new array with strides, counted in elements."""
        return self.empty(shape, dtype, [step * dtype.itemsize for step in strides])

    def run(self, kernel: Any, *args: Any) -> Any:
        """Write the call of a kernel down: it may read all of its arrays, and writes those that are new."""
        given = tuple([each.place if type(each) is StandIn else each for each in args])
        places = [each for each in given if type(each) is Place]
        self._schedule.call(kernel, *given, reads=places, writes=[each for each in places if each.buffer in self._made])
        return args[0]

    def changes(self, *arrays: Any) -> None:
        """Take note that the calls write arrays which were there before."""
        if self._schedule.refusals or any(each.place.buffer.content is not None for each in arrays):
            raise Untraceable("a change that a refusal would not undo, or one of a constant")
        self._made.update([each.place.buffer for each in arrays])
        self._schedule.changed += [each.place.buffer for each in arrays]

    def holds_while(self, function: int, number: int) -> None:
        """Let the schedule ask a C function before it runs."""
        if (function, number) not in self._schedule.conditions:
            self._schedule.conditions.append((function, number))

    def refuses(self, flags: Any) -> bool:
        """Let the schedule look at the last flag when it has run."""
        if self._schedule.changed:
            raise Untraceable("a refusal after something has changed")
        place = flags.place
        header = empty_meta((), place.header.dtype)
        last = Place(place.buffer, place.offset + place.header.nbytes - place.header.itemsize, header)
        self._schedule.refusals.append(last)
        return False


def workspace_of(schedule: Schedule) -> Workspace:
    """A workspace for one call of a lowering."""
    written = _Written(schedule)
    return Workspace(
        written.empty, written.zeros, written.arranged, written.run, written.refuses, written.changes,
        written.holds_while,
    )  # fmt: skip


def _copy_into(target: Any, source: Any) -> bool:
    if type(target) is not StandIn or type(source) is not StandIn:
        raise Untraceable("a copy of something else")
    copied(source, target.place)
    return True


def _product(name: str, left: Any, right: Any) -> Any:
    if type(left) is not StandIn or type(right) is not StandIn:
        raise Untraceable("a product with a matrix that is known")
    return getattr(generated("matmul"), name)(left, right, workspace_of(left.schedule))


def _reduced(kind: str, array: Any, dims: Any, dtype: Any) -> Any:
    return generated("reduce").reduced(kind, array, dims, dtype, workspace_of(array.schedule))


def _variances(array: Any, *given: Any) -> Any:
    return generated("reduce").variances(array, *given, workspace_of(array.schedule))


def _bounds(array: Any) -> Any:
    raise Untraceable("the smallest and the largest element")


def _with_workspace(function: Any) -> Any:
    """A function of the host's arrays that takes a workspace."""
    return lambda first, *rest: function(first, *rest, workspace=workspace_of(first.schedule))


def _library_product(left: Any, right: Any, addend: Any = None) -> Any:
    kernels = library()
    return None if kernels is None else kernels.product(left, right, addend, workspace_of(left.schedule))


_WRITTEN: dict[str, Any] = {
    "pointwise": SimpleNamespace(pointwise=_pointwise, MOST_VARIANTS=16),
    "copy_into": _copy_into,
    "concatenated": None,  # NumPy's copies are the same
    **{name: functools.partial(_product, name) for name in ("product", "product_of_few_rows")},
    "library_product": _library_product,
    "reduced": _reduced,
    "variances": _variances,
    "bounds": _bounds,
    **{name: _with_workspace(getattr(convolution, name)) for name in CONVOLUTIONS},
}
"""The functions on arrays that can be written down, by their names."""


def _written(name: str) -> Any:
    if name not in _WRITTEN:
        raise Untraceable(f"the kernel of {name}")
    return _WRITTEN[name]


HOST_CLASSES.add(StandIn)
FUNCTIONS[StandIn] = Functions(dict.fromkeys((*KERNELS, *_WRITTEN), _written))
