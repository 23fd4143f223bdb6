"""The functions that users call for elementwise ops: each begins with the short path, and leaves the rest to `slow`.

There are few texts of them, by the number of operands and by whether autocast has a rule for the op. The functions of
all ops have the code of one of these, each with its own op.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.arrays.quick import joint_shape
from ..._core.backend import LARGE
from ..._core.dtype import INTEGER
from ..._core.geometry.layout import arranged
from ..._core.process.tracebacks import leave_out_library
from ..._core.storage import are_apart
from ..._core.tensor import Tensor
from ..._core.version import note_change
from ..compiled_body import fits_in
from ..public.namespaces import Namespace
from ..public.protocol import LEADING, explain
from .text import NAMES, indented, is_recorded, kept, needs_gradient, new_tensor

if TYPE_CHECKING:
    from ..elementwise import Elementwise

_UNARY = """\
def made(op, name, slow, table, ruled):
    def function({leading}input: Tensor, *, out: Tensor | None = None) -> Tensor:
        if type(input) in PLAIN_TYPES and out is None:
            modes = THREAD.modes
{casts}
            entry = table.get(input._kind)
            if entry is not None and modes.plain:
                array = input._array
                small, kind, large = entry
                try:
                    if small is large:
                        array = large.of_one(array)
                    else:
                        array = (small if array.size < LARGE else large)(array)
                except MemoryError as error:
                    explain(error, name, {{}})
                    raise
                if type(array) is not kind.backend.array_class:
                    array = kind.backend.asarray(array)
{output}
                if {recorded} and kind.differentiable:
                    op.record_plainly((input,), output)
                return output
        return slow(input, out)
    return function
"""

_BINARY = """\
def made(op, name, slow, table, ruled):
    mixed, tensors_only = op.mixed, op.tensors_only

    def function({leading}input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        if type(input) in PLAIN_TYPES and out is None:
            modes = THREAD.modes
{casts}
            kind = input._kind
            entry = table.get(kind)
            if entry is not None and modes.plain:
                array = input._array
                if type(other) in PLAIN_TYPES:
                    operand = other._array
                    if other._kind is not kind:
                        met = mixed.get((kind, other._kind))
                        if met is None or not (array.ndim and operand.ndim):
                            return slow(input, other, None)
                        first, second, entry = met
                        if first is not None:
                            array = array.astype(first)
                        if second is not None:
                            operand = operand.astype(second)
                elif type(other) is float or type(other) is int:
                    # Python numbers adapt to the tensor's dtype, in NumPy as here; integers may not fit in it.
                    if kind.differentiable and not tensors_only:
                        operand = other
                    elif kind.dtype.category == INTEGER and fits_in(other, array.dtype) and not tensors_only:
                        operand = other = asarray(other, array.dtype)
                    else:
                        return slow(input, other, None)
                else:
                    return slow(input, other, None)
                small, kind, large = entry
                try:
                    if small is large:
                        array = large.of_two(array, operand)
                    elif array.size < LARGE:
                        stays = operand is other or operand.size * array.size < LARGE
                        stays = stays or operand.shape == array.shape[-operand.ndim:]
                        stays = stays or (operand.size < LARGE and not grows(array, operand))
                        array = (small if stays else large)(array, operand)
                    else:
                        array = large(array, operand)
                except ValueError:
                    raise shape_error(name, input, other) from None
                except MemoryError as error:
                    explain(error, name, {{}})
                    raise
                if type(array) is not ndarray:
                    if type(array) is not kind.backend.array_class:
                        array = kind.backend.asarray(array)
                elif array.ndim > 1 and operand is not other:
                    given = input._array
                    if not given.flags.c_contiguous or (
                        given.size != array.size and not other._array.flags.c_contiguous
                    ):
                        array = arranged(array, given, other._array)
{output}
                if {recorded} and kind.differentiable:
                    op.record_plainly((input, other), output)
                return output
        try:
            return slow(input, other, out)
        except Exception as error:
            leave_out_library(error)
            raise
    return function
"""

_CHANGE = """\
def made(op, inner, slow, table, write):
    tensors_only = op.tensors_only

    def function(input: Tensor, other: Any) -> Tensor:
        if type(input) in PLAIN_TYPES:
            modes = THREAD.modes
            kind = input._kind
            entry = table.get(kind)
            if entry is not None and modes.plain and entry[1] is kind and input._counter is not None:
                array = input._array
                if type(other) in PLAIN_TYPES:
                    operand = other._array
                    fits = other._kind is kind and (
                        (array.base is None and operand.base is None)
                        or (0 not in array.strides and are_apart(array, operand))
                    )
                else:  # numbers adapt to the dtype of the array
                    operand = other
                    fits = (
                        (type(other) is float or type(other) is int)
                        and (kind.differentiable or (kind.dtype.category == INTEGER and fits_in(other, array.dtype)))
                        and (array.base is None or 0 not in array.strides)
                        and not tensors_only
                    )
                if fits and not (modes.grad and ({needs})):
                    try:
                        if type(entry[0]) is ufunc and array.size < LARGE:
                            entry[0](array, operand, array)
                        else:
                            write(entry, array, array, operand)
                    except (ValueError, MemoryError):  # the long way says what is wrong
                        return slow(input, other)
                    note_change(input._counter, inner)
                    return input
        return slow(input, other)
    return function
"""


def short_unary(
    op: Elementwise, name: str, slow: Callable[[Any, Any], Tensor], casts: bool, owner: Namespace | None = None
) -> Callable[..., Tensor]:
    """The function of an op of one tensor; `casts`: it heeds autocast, where that has a rule for the op.

    With an `owner` it is bound to that, so that no class binds it.
    """
    return _function(op, name, slow, casts, 1, owner)


def short_binary(
    op: Elementwise, name: str, slow: Callable[[Any, Any, Any], Tensor], casts: bool, owner: Namespace | None = None
) -> Callable[..., Tensor]:
    """The function of an op of two operands; for the rest see `short_unary`."""
    return _function(op, name, slow, casts, 2, owner)


def short_change(op: Elementwise, slow: Callable[..., Tensor], write: Any, inner: int) -> Callable[..., Tensor]:
    """The in-place function of an op of two operands; `write` runs an entry of the op's table into an array.

    `inner`: how many functions of the package are between its caller and the user's line.
    """
    changing: Callable[..., Tensor] = _change_maker()(op, inner, slow, op.table, write)
    changing.__module__ = __name__
    return changing


@functools.cache
def _change_maker() -> Callable[..., Any]:
    needs = f"{needs_gradient('input')} or (operand is not other and ({needs_gradient('other')}))"
    scope = {"are_apart": are_apart, "note_change": note_change, "ufunc": np.ufunc}
    return _made(_CHANGE.format(needs=needs), "in-place call of an elementwise op of two operands", scope)


def _function(
    op: Elementwise, name: str, slow: Any, casts: bool, count: int, owner: Namespace | None
) -> Callable[..., Tensor]:
    make = _maker(count, casts and op.ruled is not None, owner is not None)
    function: Callable[..., Tensor] = make(op, name, slow, op.table, op.ruled)
    function.__module__ = __name__
    return function if owner is None else MethodType(function, owner)


def source(count: int, casts: bool, leading: bool = False) -> str:
    """The text of the functions of so many operands; `leading`: of those that are bound to a namespace."""
    given = "input" if count == 1 else "input, other"
    needs = needs_gradient("input")
    if count == 2:
        needs = f"{needs} or (operand is not other and ({needs_gradient('other')}))"
    cast = ["if modes.autocast is not UNCAST:", f"    {given}, = modes.autocast[ruled]({given})"]
    text = (_UNARY if count == 1 else _BINARY).format(
        leading=f"{LEADING}: Any, /, " if leading else "",
        casts=indented(cast if casts else [], 12),
        output=indented(new_tensor("array"), 16),
        recorded=is_recorded(needs),
    )
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


@functools.cache
def _maker(count: int, casts: bool, leading: bool) -> Callable[..., Any]:
    """`made` of a text."""
    text = source(count, casts, leading)
    title = f"{'public ' * leading}call of an elementwise op of {'one tensor' if count == 1 else 'two operands'}"
    title += ", cast" * casts
    scope = {
        "arranged": arranged, "asarray": np.asarray, "explain": explain, "grows": grows,
        "leave_out_library": leave_out_library, "ndarray": np.ndarray, "shape_error": shape_error,
    }  # fmt: skip
    return _made(text, title, scope)


def _made(text: str, title: str, names: dict[str, Any]) -> Callable[..., Any]:
    """`made` of a text that refers to names."""
    from ..._codegen.machine.bytecode import compiled_sources

    scope = {**NAMES, "Any": Any, "INTEGER": INTEGER, "LARGE": LARGE, "fits_in": fits_in, **names}
    exec(compiled_sources([(kept(title, text), text)])[0], scope)
    made: Callable[..., Any] = scope["made"]
    return made


def grows(small: Any, operand: Any) -> bool:
    """Whether the result of a small array and an operand is large: that one is, or both are broadcast."""
    shape = small.shape
    if type(operand) is not np.ndarray or shape == (other := operand.shape):
        return False
    most = operand.size * small.size
    if shape and other and shape[-1] == other[-1]:  # such as a weight for each feature
        most //= shape[-1] or 1
    return most >= LARGE and _are_large_together(shape, other)


@functools.lru_cache(1024)
def _are_large_together(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return math.prod(joint_shape(shape, other)) >= LARGE
    except ValueError:  # they do not fit: whoever computes says so
        return False


def shape_error(name: str, left: Any, right: Any) -> Exception:
    """PyTorch's error for shapes that do not broadcast, with both shapes and the rule."""
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
        return RuntimeError(f"{name}(): cannot combine {left!r} and {right!r}")
    a, b = left._array.shape, right._array.shape
    ndim = max(len(a), len(b))
    for position in range(-1, -ndim - 1, -1):
        size_a = a[position] if len(a) >= -position else 1
        size_b = b[position] if len(b) >= -position else 1
        if size_a != size_b and 1 not in (size_a, size_b):
            return RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) at non-singleton "
                f"dimension {ndim + position}: {name} of shapes {list(a)} and {list(b)}. Sizes must be equal, or one "
                "of them 1."
            )
    return RuntimeError(f"{name}(): shapes {list(a)} and {list(b)}")
