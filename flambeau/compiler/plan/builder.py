"""Ops written to a schedule, one after the other, as far as that goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.tiers import generated
from ..._core.arrays.abstract import meta_array
from ..._core.storage import address_of
from ..._core.tensor import Tensor
from ..._dispatch.compiled_body import BODIES
from ..._dispatch.composite import Composite
from ..._dispatch.dispatch import Primitive
from ..._dispatch.elementwise import Elementwise
from ..._dispatch.factory import Factory
from ..._dispatch.gradients.fused_derivatives import Derivative, is_operand
from ..._dispatch.writer import Writer
from ..capture.abstract_arrays import is_on_host
from ..program.items import Call, Rewritten, Value, values_in
from ..program.lower import MOST_BYTES, is_large, lowered, takes_number
from ..program.reads import bounds
from . import families
from .rules import CHANGES, TRACED, WINDOWS
from .schedule import Array, Buffer, Place, Schedule, Untraceable
from .stand_in import StandIn, copied

_MOST_CONSTANT_BYTES = 1 << 16

_COUNTED = 1 << 16
"""Bytes of an array that is large enough to be missed: there may be any number of smaller ones."""

_DTYPES = frozenset("?bBhilqfd")


class ScheduleBuilder:
    """The calls of ops that follow each other in a program."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.items: list[Call] = []
        self.places: dict[int, Place] = {}
        """The arrays of the values that it makes or is given."""
        self.size = 0
        """Bytes of what the ops make in arrays that count."""
        self.given: dict[int, Array] = {}
        """The values from outside, as they were when the program was recorded."""

    def add(self, call: Call) -> bool:
        """Write an op down; False: it is none that can be."""
        schedule = self.schedule
        written: list[list[Any]] = [schedule.launches, schedule.refusals, schedule.conditions, schedule.changed]
        before = [len(each) for each in written]
        known = set(self.places)
        try:
            results = self._results(call)
            made = _matched(call.results, call.made, results)
        except Exception:  # whatever a kernel makes of stand-ins, of arrays it will make what it should
            for lines, count in zip(written, before, strict=True):
                del lines[count:]
            for number in self.places.keys() - known:
                del self.places[number], self.given[number]
            return False
        sizes = [place.header.nbytes for place in made.values() if place.buffer.given is None]
        self.size += sum([each for each in sizes if each >= _COUNTED])
        self.places.update(made)
        self.items.append(call)
        return True

    def _results(self, call: Call) -> Any:
        op = call.op
        if isinstance(call, Rewritten):
            raise Untraceable("what stands for other ops")
        if op.draws or op.reads or (op.writes and op.name not in CHANGES):
            raise Untraceable("an op that does more than to compute")
        if not op.writes and (known := self._constants(call)) is not None:
            return known
        if (window := self._window(call)) is not None:
            return window
        if isinstance(op, Elementwise):
            return self._elementwise(op, call)
        if isinstance(op, Derivative):
            return self._derivative(op, call)
        if op.name == "copy_":
            return self._overwritten(call)
        first = op.tensors_of(call.examples)[0]
        lowering = first._kind.backend.lowering(op.name)
        is_marked = op.kernel in BODIES and lowering is None  # as elementwise: it says itself what may run
        if not (is_marked or op.name in TRACED) or not isinstance(op, (Primitive, Composite, Writer)):
            raise Untraceable(op.name)
        operands = self._stand_ins(call.args, call.examples)
        if lowering is None:
            return op.kernel(*operands)
        if (found := lowering(*operands, workspace=families.workspace_of(self.schedule))) is None:
            raise Untraceable("a lowering that declines")
        return None if op.writes else found

    def _constants(self, call: Call) -> Any:
        """The results of an op that is given nothing but constants, or nothing at all."""
        given = [self.places.get(value.number) for value in values_in(call.args)]
        if not given and not isinstance(call.op, Factory):
            return None
        if any(place is None or place.buffer.content is None for place in given):
            return None
        results = lowered(call)(*[self._content(each) for each in call.args])
        several = type(call.results) is list
        made = [
            StandIn(self.schedule, self.schedule.constant(np.asarray(each)))
            for each in (results if several else [results])
        ]
        if sum([each.nbytes for each in made]) > _MOST_CONSTANT_BYTES:
            raise Untraceable("a large constant")
        return made if several else made[0]

    def _content(self, arg: Any) -> Any:
        """An argument with the elements of constants."""
        if type(arg) is Value:
            return self.places[arg.number].buffer.content
        return type(arg)([self._content(each) for each in arg]) if type(arg) in (list, tuple) else arg

    def _window(self, call: Call) -> Any:
        """The results of an op that only looks at the memory of its first argument in another way."""
        op = call.op
        if not (op.makes_windows or op.name in WINDOWS) or type(call.args[0]) is not Value:
            return None
        source, base = self.value(call.args[0], call.examples[0]), call.examples[0]._array
        made = call.made if type(call.results) is list else [call.made]
        windows = []
        for each in made:
            array = each._array
            (low, high), (start, end) = bounds(array), bounds(base)
            if low >= end or start >= high:
                return None
            distance = address_of(array) - address_of(base)
            windows.append(StandIn(self.schedule, Place(source.buffer, source.offset + distance, meta_array(array))))
        return windows if type(call.results) is list else windows[0]

    def _elementwise(self, op: Elementwise, call: Call) -> Any:
        first = call.examples[0]
        entry = op.table.get(first._kind) if isinstance(first, Tensor) else None
        if entry is None:
            raise Untraceable("operands that are to be converted")
        operands = self._stand_ins(call.args, call.examples)
        if len(operands) == 2:
            other = call.examples[1]
            if not takes_number(op, first, other, call.made) and getattr(other, "_kind", None) is not first._kind:
                raise Untraceable("operands of several kinds")
        if not is_large(call):
            return entry[0](*operands)
        compiled = entry[2].compiled_for(len(operands))
        if compiled is None or first._array.dtype.kind != "f":
            raise Untraceable("a body that is not compiled")
        return families.Generated(compiled).many(*operands)[0]

    def _overwritten(self, call: Call) -> None:
        """Write the copy of one array into another, which may have been there before."""
        target, source = self._stand_ins(call.args, call.examples)
        buffer = target.place.buffer
        if target.shape != source.shape or target.dtype != source.dtype or buffer.content is not None:
            raise Untraceable("a copy that converts")
        if buffer.given is not None:
            families.workspace_of(self.schedule).changes(target)
        copied(source, target.place)

    def _derivative(self, op: Derivative, call: Call) -> list[Any]:
        grad, needed, *saved = call.examples
        fusion = op.fusion(generated("pointwise"), grad, needed, tuple(saved))
        if fusion is None:
            raise Untraceable("formulas that are no kernel")
        given = self._stand_ins(call.args, call.examples)
        operands = [given[0], *[each for each, value in zip(given[2:], saved, strict=True) if is_operand(value)]]
        computed = iter(() if fusion.compiled is None else families.Generated(fusion.compiled).many(*operands))
        passed_on = iter(fusion.passed_on)
        results: list[Any] = []
        for wanted, formula in zip(needed, op.node_type.formulas, strict=True):
            position = next(passed_on) if wanted and formula is not None else -1
            results.append(None if position == -1 else next(computed) if position is None else operands[position])
        return results

    def _stand_ins(self, args: Any, examples: Any) -> list[Any]:
        return [self._stand_in(arg, example) for arg, example in zip(args, examples, strict=True)]

    def _stand_in(self, arg: Any, example: Any) -> Any:
        if type(arg) is Value:
            return StandIn(self.schedule, self.value(arg, example))
        if type(arg) in (list, tuple) and any(values_in(arg)):
            return type(arg)(self._stand_ins(arg, example))
        return arg

    def value(self, value: Value, example: Tensor) -> Place:
        """The array of a value."""
        found = self.places.get(value.number)
        if found is None:
            array = example._array
            _check(array, array.nbytes)
            buffer = Buffer(array.nbytes, given=value.number)
            found = self.places[value.number] = Place(buffer, 0, meta_array(array))
            self.given[value.number] = array
        return found


def _check(array: Any, most: int = MOST_BYTES) -> None:
    if not is_on_host(array) or array.dtype.char not in _DTYPES or not array.dtype.isnative:
        raise Untraceable("an array of another type")
    if not 0 < array.nbytes <= most:
        raise Untraceable("an array without elements, or a large one")


def _matched(values: Any, made: Any, results: Any) -> dict[int, Place]:
    """The arrays of an op's results: as they were when it was recorded, to the strides."""
    if type(values) is not list:
        values, made, results = [values], [made], [results]
    if len(values) != len(results):
        raise Untraceable("another number of results")
    found: dict[int, Place] = {}
    for value, example, result in zip(values, made, results, strict=True):
        if type(value) is not Value:
            if result is not None:
                raise Untraceable("a result that is no tensor")
            continue
        array = example._array
        if type(result) is not StandIn:
            raise Untraceable("a result that is known")
        header = result.place.header
        if (header.shape, header.dtype) != (array.shape, array.dtype):
            raise Untraceable("another result")
        if array.size:  # those without elements stand for results that nobody has asked for
            _check(array)
            if header.strides != array.strides:
                raise Untraceable("a result in another arrangement")
        found[value.number] = result.place
    return found
