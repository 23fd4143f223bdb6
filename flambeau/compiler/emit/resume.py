"""Going on with a program that has failed between two of its effects: nothing is done twice, and nothing is lost.

A program is a list of lines, and what it has computed so far are the variables of its frame, which the error carries.
Before its first effect, the call begins anew. Behind it, the lines that are left become a function of these variables.
In that function ops run one by one, by nothing that the compiler has planned, and optimizers take their own steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from ..._core.backend import is_array
from ..._core.device import device_of_array
from ..._core.kind import kind_of_array
from ..._core.modes import recording
from ..._core.process.caller import GENERATED
from ..._core.tensor import Tensor
from ..._dispatch.factory import Factory
from ..._dispatch.op import Op
from ..program.items import Call, Rewritten, Value

KEY = "how to resume"
"""The key of the `Resumable` among the globals of generated functions: no name, so that no module has it."""


@dataclass
class Resumable:
    """What there is to know of the generated functions of a program, so that one of them can be gone on with."""

    lines: dict[str, Sequence[str]] = field(default_factory=dict)
    """The lines of each function."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The parameters of those that run the ops of schedules."""
    checks: int = 0
    """With so many lines of the whole left, its checks are over."""
    begins: int = 0
    """With so many lines of the whole left, its first effect begins."""
    ops: dict[str, Op] = field(default_factory=dict)
    """The ops that names in the lines stand for."""
    runners: list[str] = field(default_factory=list)
    outside: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """What names stand for that run Python as it is, such as the step of an optimizer."""


class Stop:
    """Where a program has failed."""

    def __init__(self, frame: FrameType, line: int, depth: int, inner: Stop | None) -> None:
        self._frame, self._inner = frame, inner
        self._known: Resumable = frame.f_globals[KEY]
        self._lines = self._known.lines[frame.f_code.co_name]
        at = line - 2  # behind the line with `def`
        while at > 0 and self._lines[at].startswith((" ", "else:")):
            at -= 1
        self._at = at
        self.is_outside = depth > 1 and self._lines[at].partition("(")[0] in self._known.outside
        """Whether Python that runs as it is has raised the error: it has run, and must not run again."""

    @property
    def is_at_checks(self) -> bool:
        """Whether the program was still finding out if the call is the recorded one."""
        return len(self._lines) - self._at > self._known.checks

    @property
    def has_begun(self) -> bool:
        """Whether something that was there before may have changed."""
        return len(self._lines) - self._at <= self._known.begins

    def go_back(self) -> None:
        """Let generators be where they were before the program."""
        for generator, state in self._frame.f_locals.get("drawn", ()):
            generator.set_state_bytes(state)

    def resume(self) -> Any:
        """What the program gives in the end."""
        found = dict(self._frame.f_locals)
        rest = [*self._lines[self._at :]]
        if self._inner is not None:  # the ops of a schedule were run one by one
            made = self._inner.resume()
            block = next((number for number, line in enumerate(rest) if number and not line.startswith((" ", "else:"))))
            call = next(line for line in rest[:block] if f"{self._inner.name}(" in line)
            names = call.split("= ")[0].strip().rstrip(",")
            found.update(zip([each.strip() for each in names.split(",")], made or (), strict=False))
            rest = rest[block:]
        return self._defined("resumed", ", ".join(found), rest)(*found.values())

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._frame.f_code.co_name

    def _defined(self, name: str, parameters: str, lines: Sequence[str]) -> Callable[..., Any]:
        known = self._known
        namespace = {**self._frame.f_globals, **known.outside, **dict.fromkeys(known.runners, declined)}
        namespace.update({each: functools.partial(by_op, op) for each, op in known.ops.items()})
        texts = [(each, known.parameters[each], known.lines[each]) for each in known.parameters]
        for each, given, its in [*texts, (name, parameters, lines)]:
            text = f"def {each}({given}):\n" + "".join([f"    {line}\n" for line in its or ["pass"]])
            exec(compile(text, self._frame.f_code.co_filename, "exec"), namespace)
        made: Callable[..., Any] = namespace[name]
        return made


def stopped_at(error: BaseException) -> Stop | None:
    """Where the outermost program of an error's traceback has failed; None: in none."""
    frames: list[tuple[FrameType, int, int]] = []
    place, depth = error.__traceback__, 0
    while place is not None:
        frame = place.tb_frame
        known = frame.f_globals.get(KEY)
        is_own = not frames or frame.f_globals is frames[0][0].f_globals  # no program that this one has called
        if known is not None and is_own and frame.f_code.co_name in known.lines:
            frames.append((frame, place.tb_lineno, depth))
        place, depth = place.tb_next, depth + 1
    found: Stop | None = None
    for frame, line, at in reversed(frames):
        found = Stop(frame, line, depth - 1 - at, found)
    return found


def is_of_generated_code(error: BaseException) -> bool:
    """Whether a line of a program itself has raised an error, and nothing that it calls."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_code.co_filename.startswith(GENERATED)


def one_by_one(items: Sequence[Call], values: dict[int, Any]) -> None:
    """Run items on arrays, which are kept by number: nothing is planned."""
    for item in items:
        run = item.run if isinstance(item, Rewritten) else functools.partial(by_op, item.op)
        found = run(*_given(item.args, values))
        several = type(item.results) is list
        for value, array in zip(item.results, found, strict=True) if several else [(item.results, found)]:
            if type(value) is Value:
                values[value.number] = np.asarray(array)


def _given(tree: Any, values: dict[int, Any]) -> Any:
    if type(tree) is Value:
        return values[tree.number]
    return type(tree)([_given(each, values) for each in tree]) if type(tree) in (list, tuple) else tree


def declined(*args: Any) -> bool:
    """In the place of a schedule: its ops run one by one."""
    return False


def called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In the place of what calls Python that runs as it is."""
    return function(*args, **kwargs)


def by_op(op: Op, *args: Any) -> Any:
    """The arrays that an op makes of arrays, as it runs anywhere else."""
    given = args if isinstance(op, Factory) else _tensors(args)
    with recording(False):
        return _arrays(op(*given))


def _tensors(value: Any) -> Any:
    if is_array(value):
        place = device_of_array(value)
        return Tensor._from_parts((value, kind_of_array(value.dtype, place), [0, None]))
    return type(value)([_tensors(each) for each in value]) if type(value) in (list, tuple) else value


def _arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array
    return type(value)([_arrays(each) for each in value]) if type(value) in (list, tuple) else value
