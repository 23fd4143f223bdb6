"""Updates of lists of tensors' arrays in few launches: the steps of optimizers, the scaling of gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, compress
from operator import attrgetter, is_not
from struct import Struct
from typing import Any

from ...._codegen.cuda.elementwise import can_write
from ...._codegen.cuda.multi import (
    PER_BLOCK,
    THREADS,
    capacity,
    cast_source,
    list_source,
    loss_scale_source,
    unscale_source,
)
from ...._codegen.expr import Program
from ...._core.arrays.quick import name_of
from ..arrays.array import Together, form_of, is_dense, of_form, of_forms, together
from ..runtime.driver import Launch, driver

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))


def update(program: Program, changed: tuple[int, ...], numbers: Sequence[float], *lists: Sequence[Any]) -> bool:
    """Run a program on arrays of one dtype: its first input is an element of the first list, and so on.

    Its results go to the lists `changed`. False: nothing was done, because the program or the arrays do not allow it.
    """
    return _update(program, changed, numbers, lists, None)


def update_with_steps(
    steps: Sequence[Any], program: Program, changed: tuple[int, ...], numbers: Sequence[float], *lists: Sequence[Any]
) -> bool:
    """Run a program on lists of arrays; a one-number array for each position is an input between lists and numbers."""
    if any(name_of(each.dtype) != "float32" or each.form.size != 1 for each in steps):
        return False
    return _update(program, changed, numbers, lists, steps)


_form_of, _place_of = attrgetter("form"), attrgetter("pointer")
_updates: dict[Any, Updating | None] = {}
_MOST_UPDATES = 256


def _update(
    program: Program, changed: tuple[int, ...], numbers: Sequence[float], lists: Sequence[Sequence[Any]], steps: Any
) -> bool:
    first = lists[0][0]
    # The updates of one optimizer come again and again, and begin with the same array.
    key = program, changed, len(numbers), len(lists), first.pointer, first.form.dtype, len(lists[0]), steps is None
    try:
        found = _updates[key]
    except KeyError:
        if len(_updates) >= _MOST_UPDATES:
            _updates.clear()
        found = updating(program, changed, len(numbers), len(lists), first.form.dtype, steps is not None)
        _updates[key] = found
    if found is None:
        return False
    rows = lists if steps is None else [*lists, steps]
    return found(True, False, *numbers, *chain.from_iterable(rows))


def updating(
    program: Program, changed: tuple[int, ...], numbers: int, lists: int, dtype: Any, stepped: bool = False
) -> Updating | None:
    """The kernel of such updates: `(True, False, *numbers, *arrays of all lists)`, whether it was done; or None.

    `stepped`: behind the lists comes one of arrays of one number.
    """
    name = name_of(dtype)
    if name not in _FLOATS or not can_write(program):
        return None
    return Updating(program, name, changed, numbers, lists, stepped)


class Updating:
    """Updates of the same arrays again and again: what a launch is told of these is put together once."""

    def __init__(
        self, program: Program, name: str, changed: tuple[int, ...], numbers: int, lists: int, stepped: bool
    ) -> None:
        self._rows = rows = lists + stepped
        self._launch, self._most = _kernel(program, name, lists, numbers, changed, stepped)
        self._head = Struct(f"=q{max(numbers, 1)}d").pack
        self._tail = Struct(f"={2 * self._most}q{rows * self._most}Q").pack
        self._numbers = numbers
        self._lists = lists
        self._known: tuple[list[int], list[Any], list[tuple[int, int, bytes]]] = [], [], []
        """The addresses and the forms of the arrays of before, and the launches for them."""

    def __call__(self, alone: bool, raises: bool, *given: Any) -> bool:
        numbers, arrays = given[: self._numbers], given[self._numbers :]
        forms, places = list(map(_form_of, arrays)), list(map(_place_of, arrays))
        places_before, forms_before, launches = self._known
        if places != places_before or not _lie_alike(forms, forms_before):
            count = len(arrays) // self._rows
            rows = [arrays[start : start + count] for start in range(0, len(arrays), count)]
            if not _alike(rows[: self._lists]):
                return False
            launches = [(blocks, used, self._tail(*tail)) for blocks, used, tail in _portions(rows, self._most)]
            self._known = places, forms, launches
        for blocks, used, tail in launches:
            self._launch(blocks, THREADS, self._head(used, *(numbers or (0.0,))) + tail)
        return True


def unscale(arrays: Sequence[Any], factor: Any, found: Any) -> bool:
    """Multiply arrays of one dtype by the number in `factor`, and write 1 to `found` if an element is not finite."""
    name = name_of(arrays[0].form.dtype)
    numbers = name_of(factor.form.dtype) == "float32" == name_of(found.form.dtype)
    if name not in _FLOATS or not numbers or not all(is_dense(each.form) for each in arrays):
        return False
    launch, most, pack = _unscaling(name)
    for blocks, used, tail in _portions((arrays,), most):
        launch(blocks, THREADS, pack(used, factor.pointer, found.pointer, *tail))
    return True


def cast_together(arrays: Sequence[Any], dtype: Any) -> list[Any] | None:
    """Arrays of one type as another one, in one piece of memory; None: one of them has gaps, or is no float."""
    first = arrays[0]
    key = first.pointer, first.form.dtype, len(arrays), dtype  # weights come again and again where they were
    forms, places = list(map(_form_of, arrays)), list(map(_place_of, arrays))
    group = _groups.get(key)
    if group is None or group.places != places or True in map(is_not, forms, group.forms):
        if not _may_cast(forms, dtype):
            return None
        if len(_groups) >= _MOST_UPDATES:
            _groups.clear()
        group = _groups[key] = _Group(forms, places, together(*[form_of(form.shape, dtype) for form in forms]))
    made = of_forms(group.target)
    begin, launches = group.launches
    place = made[0].pointer
    group.launches = place, _convert(arrays, made, launches if place == begin else None)
    return made


_Launches = list[tuple[Launch, int, bytes]]
"""Kernels, how many blocks of each, and what these are told."""


class _Group:
    """Arrays that are converted together again and again."""

    __slots__ = ("forms", "launches", "places", "target")

    def __init__(self, forms: list[Any], places: list[int], target: Together) -> None:
        self.forms, self.places, self.target = forms, places, target
        self.launches: tuple[int, _Launches | None] = -1, None
        """The last launches, and where the results of these begin."""


_groups: dict[Any, _Group] = {}


def cast_each(arrays: Sequence[Any], dtype: Any) -> list[Any] | None:
    """Arrays converted to `dtype` by one kernel, each in memory of its own; None: other ways are to be taken."""
    if not _may_cast([each.form for each in arrays], dtype):
        return None
    made = [of_form(_form_for(each.shape, dtype)) for each in arrays]
    _convert(arrays, made)
    return made


@lru_cache(4096)
def _form_for(shape: tuple[int, ...], dtype: Any) -> Any:
    return form_of(shape, dtype)


def _may_cast(forms: Sequence[Any], dtype: Any) -> bool:
    types = {form.dtype for form in forms}
    names = [name_of(each) for each in (dtype, *types)]
    return len(types) == 1 and _FLOATS.issuperset(names) and False not in [form.flags.c_contiguous for form in forms]


def _convert(given: Sequence[Any], made: Sequence[Any], launches: _Launches | None = None) -> _Launches:
    """Convert some arrays into others, by launches that have been prepared for these if there are any."""
    if launches is None:
        launch, most, pack = _converting(name_of(given[0].dtype), name_of(made[0].dtype))
        launches = [(launch, blocks, pack(used, *tail)) for blocks, used, tail in _portions((given, made), most)]
    for launch, blocks, fields in launches:
        launch(blocks, THREADS, fields)
    return launches


@cache
def _converting(source: str, target: str) -> Any:
    most = capacity(2, 0)
    return driver().compile(cast_source(source, target)), most, Struct(f"=q{2 * most}q{2 * most}Q").pack


def adapt_loss_scale(scale: Any, tracker: Any, found: Any, growth: float, backoff: float, interval: int) -> Any:
    """The op, in one launch."""
    names = [name_of(each.form.dtype) for each in (scale, tracker, found)]
    if names != ["float32", "int32", "float32"] or any(each.form.size != 1 for each in (scale, tracker, found)):
        return None
    fields = _SCALE(scale.pointer, tracker.pointer, found.pointer, growth, backoff, interval)
    _scaling()(1, 1, fields)
    return True


_SCALE = Struct("=QQQddq").pack


@cache
def _scaling() -> Any:
    return driver().compile(loss_scale_source())


@cache
def _unscaling(name: str) -> Any:
    most = capacity(1, 2)
    return driver().compile(unscale_source(name)), most, Struct(f"=qQQ{2 * most}q{most}Q").pack


def _portions(rows: Sequence[Sequence[Any]], most: int) -> Iterator[tuple[int, int, list[int]]]:
    """For each launch how many blocks it has and for how many positions, and what it is told of their arrays."""
    for chosen, blocks, numbers in _cut(tuple([each.form.size for each in rows[0]]), most):
        empty = [0] * (most - len(chosen))
        fields = [*numbers]
        for row in rows:
            fields += [row[at].pointer for at in chosen]
            fields += empty
        yield blocks, len(chosen), fields


@lru_cache(256)
def _cut(sizes: tuple[int, ...], most: int) -> tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]:
    """For each launch of arrays of such sizes which of them it is about, how many blocks it has, and which block is the
    first of each array, and the sizes.
    """
    launches = []
    for start in range(0, len(sizes), most):
        chosen = [at for at in range(start, min(start + most, len(sizes))) if sizes[at]]
        if not chosen:
            continue
        empty = [0] * (most - len(chosen))
        begin, blocks = [], 0
        for at in chosen:
            begin.append(blocks)
            blocks += -(-sizes[at] // PER_BLOCK)
        launches.append((tuple(chosen), blocks, (*begin, *empty, *[sizes[at] for at in chosen], *empty)))
    return tuple(launches)


def _lie_alike(forms: list[Any], others: list[Any]) -> bool:
    """Whether forms say the same; most are the same."""
    others_than_before = compress(zip(forms, others, strict=True), map(is_not, forms, others))
    return all(one.shape == other.shape and one.strides == other.strides for one, other in others_than_before)


def _alike(lists: Sequence[Sequence[Any]]) -> bool:
    """Whether the arrays at one position have their elements in the same places."""
    for column in zip(*lists, strict=True):
        form = column[0].form
        if not is_dense(form) or any(
            each.form.strides != form.strides or each.form.shape != form.shape for each in column
        ):
            return False
    return True


@cache
def _kernel(program: Program, name: str, lists: int, numbers: int, changed: tuple[int, ...], stepped: bool) -> Any:
    most = capacity(lists + stepped, numbers)
    return driver().compile(list_source(program, name, lists, numbers, changed, stepped)), most
