"""Operators of one's own as one op: programs call their Python as it is, and look at nothing in it.

An operator that `torch.library.custom_op` made is opaque: its function runs in every call, so whatever it reads, prints
or branches on is its own. That holds where all results are tensors whose shapes follow from the arguments, which a
function for tensors without data (`register_fake`) says. Other operators are recorded as what they run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .._core.modes import THREAD
from .._core.tensor import PLAIN_TYPES, Tensor
from .._dispatch.arguments.autocast import is_autocast_enabled, switched_off
from .._dispatch.interpreter import Interpreter, interpret
from .._dispatch.op import Op
from .._dispatch.public.schema import FunctionSchema

_NOBODY = Interpreter()
_NOBODY.takes_operators_whole = True

_MOST_LOOKS = 256
"""For so many shapes of arguments it is kept what results look like."""

Looks = list[tuple[tuple[int, ...], Any]]
"""Shapes and dtypes of results."""


class WholeOperator(Op):
    """An operator as one op: `op(("scale",), x, y, 2.0)` runs it on `(x, y, scale=2.0)`."""

    draws = True  # it may: the order of such ops stays

    def __init__(self, operator: Any) -> None:
        self.name = self.__name__ = operator._qualname
        self._run = operator._run_kernel
        self._looks: dict[Any, Looks | None] = {}

    def __call__(self, names: tuple[str, ...], *values: Any) -> Any:
        modes = THREAD.modes
        if modes.interpreters:
            return interpret(self, (names, *values), modes)
        with switched_off():
            return self._call(names, values)

    def _call(self, names: tuple[str, ...], values: Sequence[Any]) -> Any:
        count = len(values) - len(names)
        return self._run(*values[:count], **dict(zip(names, values[count:], strict=True)))

    def again(self, names: tuple[str, ...], *values: Any) -> Any:
        """Run it in a program, which relies on shapes and dtypes."""
        results = self(names, *values)
        expected = self.looks(names, values)
        if expected is not None and _looks_of(results) != expected:
            raise RuntimeError(
                f"{self.name}: its results are {_looks_of(results)}, and what register_fake was given says {expected}"
            )
        return results

    def looks(self, names: tuple[str, ...], values: Sequence[Any]) -> Looks | None:
        """What the results of a call look like, as tensors without data tell; None: they do not."""
        key = names, *map(_key_of, values)
        if key not in self._looks:
            if len(self._looks) >= _MOST_LOOKS:
                self._looks.clear()
            try:
                self._looks[key] = _looks_of(self._call(names, [_without_data(each) for each in values]))
            except Exception:  # whatever the function without data raises: the shapes are unknown
                self._looks[key] = None
        return self._looks[key]


def writer_of_operators() -> Interpreter | None:
    """The interpreter that writes a call of an operator down as it is, if one does."""
    stack = THREAD.modes.interpreters
    return stack[-1] if stack and stack[-1].writes_operators_whole else None


def run_whole(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of a call that is recorded as one op, or watched before one is recorded; None: it is neither."""
    stack = THREAD.modes.interpreters
    recorder = stack[-1] if stack else _NOBODY
    if recorder is _NOBODY and sys.getprofile() is None:
        return None
    if not recorder.takes_operators_whole or not _is_of_tensors(operator.schema):
        return None
    op = operator._whole = operator._whole or WholeOperator(operator)
    names, values = tuple(kwargs), (*args, *kwargs.values())
    if not all(map(_is_plain, values)) or is_autocast_enabled("cpu"):
        return None
    with recorder.aside():
        expected = op.looks(names, values)
    if expected is None:
        return None
    results = op(names, *values)
    if _looks_of(results) != expected:
        recorder.misses(f"{op.name} gives other shapes than the function that register_fake was given")
    return results


def _is_of_tensors(schema: FunctionSchema) -> bool:
    """Whether an operator gives tensors, as many in each call, and changes nothing."""
    return bool(schema.returns) and not schema.is_mutable and all(each.type_text == "Tensor" for each in schema.returns)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Tensor):
        return type(value) in PLAIN_TYPES and value._kind.is_cpu and not value._kind.indirect
    return all(map(_is_plain, value)) if type(value) in (list, tuple) else True


def _without_data(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to("meta")
    return type(value)(map(_without_data, value)) if type(value) in (list, tuple) else value


def _key_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array.shape, value._array.strides, value._kind
    return tuple(map(_key_of, value)) if type(value) in (list, tuple) else repr(value)


def _looks_of(results: Any) -> Looks:
    listed = [results] if isinstance(results, Tensor) else results
    return [(tuple(each.shape), each.dtype) for each in listed]
