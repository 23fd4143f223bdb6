"""Random programs about tensors, views, in-place changes and gradients, that run under PyTorch and under Flambeau.

A program is a list of Python statements over the name `T` (the module) and the variables that earlier statements
made. A statement may fail: it must then fail under both, and the program goes on. `difference` runs a program
under both and says where they first disagree.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import flambeau
from tests.support.oracle import pytorch

from .program import Failure, Program

Namespace = dict[str, Any]

_TOLERANCE = 1e-8
# Errors after which a program proves nothing more: PyTorch's own failures, its refusal of memory that it suspects of
# being read while it is written, of results that were saved before `detach_`, and, where nobody has looked at a view
# since its base began to require gradients, of changes that work as soon as somebody has.
_FAILURES = ("INTERNAL ASSERT", "some elements of the input tensor and the written-to", "detached in-place")
_ONLY_PYTORCH = {True: _FAILURES, False: (*_FAILURES, "a leaf Variable that requires grad is being used")}


@dataclass(frozen=True)
class Difference:
    """Where two runs of a program first disagree: after which statement, on what, and how."""

    step: int
    about: str
    expected: Any
    actual: Any


@functools.lru_cache(maxsize=4096)
def _compiled(statement: str) -> CodeType:
    return compile(statement, "<program>", "exec")


def namespace(module: Any) -> Namespace:
    """The names that a program starts with; `log` is what its hooks write to."""
    return {"T": module, "log": []}


def perform(statement: str, names: Namespace) -> tuple[str, str] | None:
    """Run one statement; if it fails, the type of its error, and what it said."""
    try:
        exec(_compiled(statement), names)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def _asked(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:
        return type(error).__name__


def _observed(tensor: Any, names: Namespace) -> dict[str, Any]:
    """What a program can find out about one of its tensors."""
    grad_fn = _asked(lambda: tensor.grad_fn)
    base = tensor._base
    return {
        "value": tensor.detach().tolist(),
        "shape": tuple(tensor.shape),
        "dtype": str(tensor.dtype),
        "stride": _telling_strides(tensor) if tensor._is_view() else None,
        "offset": tensor.storage_offset() if tensor.numel() else None,
        "requires_grad": tensor.requires_grad,
        "grad_fn": (grad_fn.name() if hasattr(grad_fn, "name") else grad_fn) if tensor.numel() else None,
        "edges": _edges(grad_fn) if hasattr(grad_fn, "next_functions") else None,
        "is_leaf": _asked(lambda: tensor.is_leaf),
        "output_nr": tensor.output_nr,
        "version": tensor._version,
        "retains_grad": tensor.retains_grad,
        "is_view": tensor._is_view(),
        "base": base is not None and [name for name, value in names.items() if value is base],
        "same_as": [name for name, value in names.items() if value is tensor],
    }


def _telling_strides(tensor: Any) -> list[int]:
    """The strides that decide where elements lie."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and tensor.numel()]


def _edges(node: Any) -> list[Any]:
    """Which inputs the gradient goes to, and as which of the outputs that they were."""
    return [None if after is None else number for after, number in node.next_functions]


def _gradient(tensor: Any) -> dict[str, Any] | None:
    """What is promised of a derivative's result: not how it was computed, and so whether it has a derivative itself."""
    if tensor is None:
        return None
    return {"value": tensor.tolist(), "shape": tuple(tensor.shape), "dtype": str(tensor.dtype)}


def _state(names: Namespace) -> dict[str, Any]:
    kind = names["T"].Tensor
    state = {
        name: _observed(value, names) for name, value in names.items() if name[0] == "v" and isinstance(value, kind)
    }
    results = {name: _gradient(value) for name, value in names.items() if name[0] == "g"}
    return state | results | {"log": [(name, grad.tolist()) for name, grad in names["log"]]}


def _gradients(names: Namespace) -> dict[str, Any]:
    kind = names["T"].Tensor
    return {name: _gradient(value.grad) for name, value in names.items() if isinstance(value, kind)}


def difference(program: Sequence[str], every_step: bool = True) -> Difference | None:
    """The first disagreement of the two modules about `program`; None if there is none.

    Looking at a view connects it to the history of its base. Without `every_step` only the last state is looked at, so
    that the program meets views which nobody has looked at since their base changed.
    """
    theirs, ours = namespace(pytorch), namespace(flambeau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step, statement in enumerate(program):
            expected, actual = perform(statement, theirs), perform(statement, ours)
            if expected is not None and any(phrase in expected[1] for phrase in _ONLY_PYTORCH[every_step]):
                return None
            if (expected and expected[0]) != (actual and actual[0]):
                return Difference(step, "error", expected, actual)
            if every_step:
                found = _first_difference(_state(theirs), _state(ours))
                if found is not None:
                    return Difference(step, *found)
        found = _first_difference(_state(theirs), _state(ours)) or _first_difference(
            _gradients(theirs), _gradients(ours), "grad."
        )
    return None if found is None else Difference(len(program), *found)


def _first_difference(expected: Any, actual: Any, path: str = "") -> tuple[str, Any, Any] | None:
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        parts: Iterator[tuple[Any, Any, Any]] = ((key, expected[key], actual[key]) for key in expected)
    else:
        return None if _same(expected, actual) else (path.rstrip("."), expected, actual)
    for key, left, right in parts:
        found = _first_difference(left, right, f"{path}{key}.")
        if found is not None:
            return found
    return None


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        return len(expected) == len(actual) and all(map(_same, expected, actual))
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, float):
        if math.isnan(expected):
            return math.isnan(actual)
        return math.isclose(expected, actual, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(expected == actual)


def judge(program: Program) -> Failure | None:
    """The first disagreement, as the fuzzers name it; without PyTorch there is nobody to disagree with."""
    if pytorch is None:
        return None
    for every_step in (True, False):
        found = difference(program, every_step)
        if found is not None:
            topic = ["grad"] * found.about.startswith("grad.") + [found.about.split(".")[-1]]
            topic += ["that PyTorch does not raise"] * (found.about == "error" and found.expected is None)
            detail = f"{found.about}: {found.expected!r} in PyTorch, {found.actual!r} in Flambeau"
            place = program[found.step] if found.step < len(program) else "the end"
            return Failure("PyTorch and Flambeau", " ".join(topic), f"after {place!r}, {detail}")
    return None


def alone(program: Program) -> None:
    """Run a program under Flambeau, and look at what it made."""
    names = namespace(flambeau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in program:
            perform(statement, names)
            _state(names)
