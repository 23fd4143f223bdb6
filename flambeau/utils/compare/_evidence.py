"""The second pass: tensors of the few ops that may be at fault, and their results in float64 from the same inputs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..._core.backend import to_host
from ..._core.dtype import complex64, complex128, float64
from ..._core.dtype import dtype as Dtype
from ..._core.modes import THREAD
from ..._core.process.interrupts import uninterrupted
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from ..._dispatch.public.overloads import operator_call

LARGEST = 1 << 24
"""Bytes of a tensor that is kept; larger ones are kept in part."""


class Evidence:
    """What an op of a run was given and made, and what it makes in float64."""

    def __init__(self, call: str, inputs: list[Any], outputs: list[Any], exact: list[Any] | None) -> None:
        self.call = call
        """The call as PyTorch would write it; `x0`, `x1`, ... are the tensors."""
        self.inputs, self.outputs, self.exact = inputs, outputs, exact

    def errors(self) -> list[tuple[float, float]]:
        """For each result its difference from the one in float64, as root mean square, and the size of that one."""
        if self.exact is None:
            return []
        return [distance(made, exact) for made, exact in zip(self.outputs, self.exact, strict=False)]


def distance(made: Any, exact: Any) -> tuple[float, float]:
    """The root mean square of the difference of two arrays, and that of the second one."""
    if made.shape != exact.shape or not made.size:
        return 0.0, 0.0
    made, exact = (np.asarray(each, np.complex128 if each.dtype.kind == "c" else np.float64) for each in (made, exact))
    with np.errstate(all="ignore"):
        same = (made == exact) | (np.isnan(made) & np.isnan(exact))
        apart = np.where(same, 0, made - exact)
        size = np.where(np.isfinite(exact), exact, 0)
        return float(np.sqrt(np.mean(np.abs(apart) ** 2))), float(np.sqrt(np.mean(np.abs(size) ** 2)))


class EvidenceOfRun:
    """Collects evidence about some ops of a run, by their numbers in its trace; `values` are what they read."""

    def __init__(self, ops: Iterable[int], values: Iterable[int]) -> None:
        self._ops = frozenset(ops)
        self._values = frozenset(values)
        self._copies: dict[int, Any] = {}
        self.found: dict[int, Evidence] = {}

    def wants(self, number: int) -> bool:
        """Whether the tensors of an op are to be kept."""
        return number in self._ops

    def made(self, number: int, array: Any) -> None:
        """Hear that a value was met for the first time."""
        if number in self._values:
            self._copies[number] = array.copy()

    def keep(
        self, recorder: Any, number: int, op: Op, args: Sequence[Any], read: Sequence[int], made: Sequence[Tensor]
    ) -> None:
        """Keep what op `number` read and made."""
        inputs: list[Any] = []
        values = iter(read)

        def taken(value: Any, is_written: bool) -> Any:
            if isinstance(value, Tensor):
                copy = self._copies.get(next(values))
                array = copy if copy is not None else None if is_written else to_host(value._array).copy()
                inputs.append(array)
                return _Input(len(inputs) - 1)
            if type(value) is list or type(value) is tuple:
                return type(value)([taken(each, is_written) for each in value])
            return value

        given = [taken(each, position in op.writes) for position, each in enumerate(args)]
        outputs = [to_host(each._array).copy() for each in made]
        exact = None
        if not op.draws and inputs and all(each is not None for each in inputs):
            exact = _exact(op, given, inputs)
        self.found[number] = Evidence(_call_text(op, args), inputs, outputs, exact)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the evidence to a file."""
        arrays: dict[str, Any] = {}
        calls = {}
        for number, each in self.found.items():
            calls[number] = each.call
            for name, group in (("inputs", each.inputs), ("outputs", each.outputs), ("exact", each.exact or [])):
                for position, array in enumerate(group):
                    if array is not None:
                        arrays[f"{number}/{name}/{position}"] = _storable(array)
        with open(path, "wb") as file:
            np.savez(file, calls=np.frombuffer(json.dumps(calls).encode(), np.uint8), **arrays)


def load_evidence(path: str | os.PathLike[str]) -> dict[int, Evidence]:
    """The evidence in a file."""
    found: dict[int, Evidence] = {}
    with np.load(path, allow_pickle=False) as file:
        for number, call in json.loads(file["calls"].tobytes().decode()).items():
            found[int(number)] = Evidence(call, [], [], [])
        names = [each.split("/") for each in file.files if "/" in each]
        for number, group, position in sorted(names, key=lambda each: (each[0], each[1], int(each[2]))):
            getattr(found[int(number)], group).append(file[f"{number}/{group}/{position}"])
    for each in found.values():
        each.exact = each.exact or None
    return found


def _storable(array: Any) -> Any:
    """An array of a dtype that NumPy's files know, and not too large."""
    if array.dtype.kind not in "biufc" or array.dtype.num > 23:  # 16- and 8-bit floats of other packages
        array = array.astype(np.float32)
    most = max(1, LARGEST // array.itemsize)
    return array if array.size <= most else array.reshape(-1)[:most]


class _Input:
    """Stands in the arguments of a call for one of its tensors."""

    def __init__(self, number: int) -> None:
        self.number = number


class unwatched:
    """A context in which ops run without interpreters and without autograd."""

    @uninterrupted
    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.interpreters, modes.grad
        modes.interpreters, modes.grad = (), False
        modes.refresh()

    @uninterrupted
    def __exit__(self, *exception: object) -> None:
        modes = THREAD.modes
        modes.interpreters, modes.grad = self._before
        modes.refresh()


def is_float(array: Any) -> bool:
    """Whether an array holds floats or complex numbers, those of other packages' dtypes included."""
    return array.dtype.kind in "fcV" or array.dtype.num > 23


def in_float64(op: Op, args: Sequence[Any], wide: Callable[[Any], Tensor]) -> list[Tensor | None] | None:
    """The results of a call with all its floats in float64, written arguments first; None: the op does not take them.

    `wide` gives a tensor in float64 for each tensor, or what stands for one, among the arguments.
    """

    def widened(value: Any) -> Any:
        if isinstance(value, (Tensor, _Input)):
            return wide(value)
        if type(value) is list or type(value) is tuple:
            return type(value)([widened(each) for each in value])
        if isinstance(value, Dtype):
            return float64 if value.is_floating_point else complex128 if value is complex64 else value
        if isinstance(value, np.dtype) and value.kind == "f":
            return np.dtype(np.float64)
        return value

    try:
        with unwatched():
            given = [widened(each) for each in args]
            result = op(*given)
    except Exception:  # an op that has no float64 form, or checks what it is given: there is nothing to compare with
        return None
    written = [each for position in op.writes for each in _flat(given[position])]
    return [*written, *(each for each in _flat(result) if all(each is not other for other in written))]


def _exact(op: Op, given: list[Any], inputs: list[Any]) -> list[Any] | None:
    """The results of a call in float64, from the arrays that stand for its tensors."""
    from ... import from_numpy

    def wide(value: Any) -> Tensor:
        array = inputs[value.number]
        if array.dtype.kind == "c":
            return from_numpy(array.astype(np.complex128))
        return from_numpy(array.astype(np.float64) if is_float(array) else array.copy())

    made = in_float64(op, given, wide)
    return None if made is None else [to_host(each._array) for each in made if each is not None]


def _flat(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [each for item in value for each in _flat(item)] if isinstance(value, (list, tuple)) else []


def _call_text(op: Op, args: Sequence[Any]) -> str:
    """The call with `x0`, `x1`, ... for tensors, in the order of the op's own arguments."""
    names: dict[int, str] = {}
    for number, each in enumerate(_flat(list(args))):
        names.setdefault(id(each), f"x{number}")

    def text(value: Any) -> str:
        if isinstance(value, Tensor):
            return names.get(id(value), "?")
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(text, value))}]"
        return f"np.{value!r}" if isinstance(value, np.dtype) else repr(value)

    try:
        func, positional, keywords = operator_call(op, args)
    except Exception:  # an op without a form among PyTorch's operators is named as it is
        return f"{op.name}({', '.join(map(text, args))})"
    parts = [*map(text, positional), *(f"{key}={text(value)}" for key, value in keywords.items())]
    return f"torch.ops.{func}({', '.join(parts)})"


def literal(array: Any) -> str | None:
    """A small array as Python source that gives the same bits; None if it is large."""
    if array.size > 64 or array.dtype.kind not in "fiub":
        return None
    values = repr(array.tolist()).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
    return f"torch.tensor({values}, dtype=torch.{array.dtype})"
