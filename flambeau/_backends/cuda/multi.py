"""Updates of lists of tensors' arrays in few launches: the steps of optimizers, the scaling of gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from struct import Struct
from typing import Any

from ..._codegen.cuda.elementwise import can_write
from ..._codegen.cuda.multi import PER_BLOCK, THREADS, capacity, list_source, unscale_source
from ..._codegen.expr import Program
from ..._core.arrays.quick import name_of
from .array import is_dense
from .driver import driver

_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))


def update(program: Program, changed: tuple[int, ...], numbers: Sequence[float], *lists: Sequence[Any]) -> bool:
    """Run a program on arrays of one dtype: its first input is an element of the first list, and so on.

    Its results go to the lists `changed`. False: nothing was done, because the program or the arrays do not allow it.
    """
    return _update(program, changed, numbers, lists, None)


def updating(program: Program, changed: tuple[int, ...], numbers: int, lists: int, dtype: Any) -> Updating | None:
    """The kernel of such updates: `(True, False, *numbers, *arrays of all lists)`, whether it was done; or None."""
    name = name_of(dtype)
    if name not in _FLOATS or not can_write(program):
        return None
    return Updating(program, name, changed, numbers, lists)


class Updating:
    """Updates of the same arrays again and again: what a launch is told of these is put together once."""

    def __init__(self, program: Program, name: str, changed: tuple[int, ...], numbers: int, lists: int) -> None:
        self._launch, self._most, _ = _kernel(program, name, lists, numbers, changed, False)
        self._head = Struct(f"=q{max(numbers, 1)}d").pack
        self._tail = Struct(f"={2 * self._most}q{lists * self._most}Q").pack
        self._numbers = numbers
        self._lists = lists
        self._places: list[Any] = []
        self._launches: list[tuple[int, int, bytes]] = []

    def __call__(self, alone: bool, raises: bool, *given: Any) -> bool:
        numbers, arrays = given[: self._numbers], given[self._numbers :]
        places = [(each.pointer, each.form.strides) for each in arrays]
        if places != self._places:
            count = len(arrays) // self._lists
            rows = [arrays[start : start + count] for start in range(0, len(arrays), count)]
            if not _alike(rows):
                return False
            self._places = places
            self._launches = [(blocks, used, self._tail(*tail)) for blocks, used, tail in _portions(rows, self._most)]
        for blocks, used, tail in self._launches:
            self._launch(blocks, THREADS, self._head(used, *(numbers or (0.0,))) + tail)
        return True


def update_with_steps(
    steps: Sequence[Any], program: Program, changed: tuple[int, ...], numbers: Sequence[float], *lists: Sequence[Any]
) -> bool:
    """The same with an array of one number for each position, which is an input between the lists and the numbers."""
    if any(name_of(each.dtype) != "float32" or each.form.size != 1 for each in steps):
        return False
    return _update(program, changed, numbers, lists, steps)


def _update(
    program: Program, changed: tuple[int, ...], numbers: Sequence[float], lists: Sequence[Sequence[Any]], steps: Any
) -> bool:
    name = name_of(lists[0][0].dtype)
    if name not in _FLOATS or not _alike(lists) or not can_write(program):
        return False
    rows = lists if steps is None else [*lists, steps]
    launch, most, pack = _kernel(program, name, len(lists), len(numbers), changed, steps is not None)
    for blocks, used, tail in _portions(rows, most):
        launch(blocks, THREADS, pack(used, *(numbers or [0.0]), *tail))
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


@cache
def _unscaling(name: str) -> Any:
    most = capacity(1, 2)
    return driver().compile(unscale_source(name)), most, Struct(f"=qQQ{2 * most}q{most}Q").pack


def _portions(rows: Sequence[Sequence[Any]], most: int) -> Iterator[tuple[int, int, list[int]]]:
    """For each launch how many blocks it has and for how many positions, and what it is told of their arrays."""
    columns = list(zip(*rows, strict=True))
    for start in range(0, len(columns), most):
        chosen = [column for column in columns[start : start + most] if column[0].form.size]
        if not chosen:
            continue
        empty = [0] * (most - len(chosen))
        begin, blocks, sizes = [], 0, []
        for column in chosen:
            size = column[0].form.size
            begin.append(blocks)
            sizes.append(size)
            blocks += -(-size // PER_BLOCK)
        places = [[column[at].pointer for column in chosen] + empty for at in range(len(rows))]
        yield blocks, len(chosen), [*begin, *empty, *sizes, *empty, *[place for row in places for place in row]]


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
    rows = lists + stepped
    most = capacity(rows, numbers)
    layout = Struct(f"=q{max(numbers, 1)}d{2 * most}q{rows * most}Q")
    return driver().compile(list_source(program, name, lists, numbers, changed, stepped)), most, layout.pack
