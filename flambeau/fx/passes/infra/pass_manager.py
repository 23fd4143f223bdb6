"""Several passes one after the other, under the names of `torch.fx.passes.infra.pass_manager`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def pass_result_wrapper(fn: Pass) -> Pass:
    """A function that changes a module in place, or returns another, as one that returns a `PassResult`."""
    if inspect.get_annotations(fn, eval_str=False).get("return") in (PassResult, "PassResult"):
        return fn

    @functools.wraps(fn)
    def wrapped(gm: Any) -> PassResult:
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(gm if result is None else result, True)

    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A rule: one pass comes before another."""
    return lambda a, b: a is not that or b is not this


class PassManager:
    """Runs passes in an order that fits the rules, perhaps several times."""

    def __init__(
        self, passes: list[Pass] | None = None, constraints: list[Constraint] | None = None, steps: int | None = None,
        run_checks_after_each_pass: bool = False, suppress_check_failures: bool = False,
    ) -> None:  # fmt: skip
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a rule: whether a pass may stand before another."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """An error if the order does not fit the rules."""
        for rule in self.constraints:
            for number, first in enumerate(self.passes):
                for second in self.passes[number + 1 :]:
                    if not rule(first, second):
                        raise RuntimeError(
                            "pass schedule constraint violated. Expected one pass before the other, but found "
                            f"{first} at index {number} in pass list."
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Find an order that fits the rules."""
        waiting, done = list(self.passes), list[Pass]()
        while waiting:
            free = next((each for each in waiting if all(rule(each, other) for rule in self.constraints
                         for other in waiting if other is not each)), None)  # fmt: skip
            if free is None:
                raise RuntimeError(f"Circular dependency detected within the following passes: {waiting}")
            waiting.remove(free)
            done.append(free)
        self.passes = done
        self._validated = True

    def add_checks(self, check: Callable[[Any], Any]) -> None:
        """Look at the module by a function of it after each pass."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.__dict__["check"] = check

    def check(self, module: Any) -> None:
        """An error if the module is not as it should be; nothing by default."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        modified = False
        for _ in range(self.steps):
            changed = False
            for each in self.passes:
                result = pass_result_wrapper(each)(module)
                if result is None:
                    continue
                module, changed = result.graph_module, changed or result.modified
                if hasattr(module, "recompile"):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            modified = modified or changed
            if not changed:
                break
        return PassResult(module, modified)
