"""The older manager of passes: functions of modules, run one after the other in an order that satisfies constraints."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]  # fmt: skip

_LOG = logging.getLogger(__name__)
Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def inplace_wrapper(fn: Pass) -> Pass:
    """A pass that changes its argument and gives nothing as one that gives the argument."""

    @functools.wraps(fn)
    def wrapped(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """A pass whose result is logged."""

    @functools.wraps(fn)
    def wrapped(gm: Any) -> Any:
        result = fn(gm)
        _LOG.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped


def loop_pass(base_pass: Pass, n_iter: int | None = None, predicate: Callable[[Any], bool] | None = None) -> Pass:
    """A pass over and over: so many times, or as long as a condition holds of the result."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @functools.wraps(base_pass)
    def repeated(source: Any) -> Any:
        result = source
        if n_iter is not None and n_iter > 0:
            for _ in range(n_iter):
                result = base_pass(result)
        elif predicate is not None:
            while predicate(result):
                result = base_pass(result)
        else:
            raise RuntimeError(f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate")
        return result

    return repeated


def _unwrapped(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """`that` does not come before `this`."""

    def holds(first: Pass, second: Pass) -> bool:
        return not (first is that and second is this)

    return holds


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """A constraint on the order of passes that were wrapped: what they wrap counts."""

    def holds(first: Pass, second: Pass) -> bool:
        return not (_unwrapped(first) is those and _unwrapped(second) is these)

    return holds


class PassManager:
    """Passes, and constraints on their order."""

    def __init__(self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None) -> None:
        self.passes: list[Pass] = passes or []
        self.constraints: list[Constraint] = constraints or []
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """A manager of these passes."""
        return PassManager(passes)

    def add_pass(self, _pass: Pass) -> None:
        """One more, as the last."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint on the order of the passes."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Leave out passes, by their names."""
        self.passes = [each for each in self.passes if each.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Another pass in the place of one."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Refuse an order that a constraint forbids."""
        if self._validated:
            return
        for constraint in self.constraints:
            for at, first in enumerate(self.passes):
                for second in self.passes[at + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {_name(second)} before {_name(first)}"
                        )
        self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        result = source
        for each in self.passes:
            result = each(result)
        return result


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or inspect.getdoc(function) or function)
