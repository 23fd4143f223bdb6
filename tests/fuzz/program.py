"""Random programs as text: how they run, where two runs disagree, and how a program that shows it becomes short.

A program is a tuple of lines of Python over the names `torch`, `nn`, `F`, `compile` and `see`. It calls `see` with what
is to be compared. It runs up to three times: under PyTorch, under Flambeau, and under Flambeau with a `compile` that
compiles; in the first two `compile` gives back its argument. PyTorch and Flambeau agree but for rounding, Flambeau
plain and compiled to the bit; where one raises an error, the others raise the same kind of error.
"""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import math
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import flambeau
from tests.support.oracle import pytorch

from . import rounding

Program = tuple[str, ...]
Judge = Callable[[Program], "Failure | None"]

_ERROR = "raises"
_numbers = itertools.count()


class Failure(NamedTuple):
    """Two runs that disagree: which, about what (the same kind of failure has the same words), and in detail."""

    runs: str
    about: str
    detail: str

    @property
    def kind(self) -> tuple[str, str]:
        return self.runs, self.about


def source(program: Program) -> str:
    """The text of a program; a block that has lost its lines passes."""
    lines: list[str] = []
    for line, after in itertools.zip_longest(program, program[1:], fillvalue=""):
        lines.append(line)
        if line.rstrip().endswith(":") and indent(after) <= indent(line):
            lines.append(" " * (indent(line) + 4) + "pass")
    return "\n".join(lines) + "\n"


def indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def observed(value: Any) -> Any:
    """What is compared of a value, as plain Python."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, complex)):
        return {"value": value}
    if isinstance(value, (list, tuple)):
        return [observed(each) for each in value]
    if isinstance(value, dict):
        return {str(key): observed(each) for key, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: observed(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "requires_grad"):
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "stride": _telling_strides(value),
            "requires_grad": value.requires_grad,
            "is_leaf": value.is_leaf,
            "value": value.detach().tolist(),
        }
    return type(value).__name__


def _telling_strides(tensor: Any) -> list[int]:
    """The strides that decide where elements lie."""
    return [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1 and tensor.numel()]


class Run(NamedTuple):
    """What a run of a program has shown to `see`, the error that ended it, and where inside the library that arose."""

    seen: list[Any]
    error: BaseException | None
    place: str


def run(program: Program, module: Any, compile: Callable[..., Any]) -> Run:
    """Run a program under a library."""
    seen: list[Any] = []
    name = f"<program {next(_numbers)}>"  # inspect finds the source there, as compile asks for it
    text = source(program)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    holder = types.ModuleType("__program__")
    names = {
        "torch": module, "T": module, "nn": module.nn, "F": module.nn.functional, "compile": compile,
        "see": lambda *values: seen.extend(observed(each) for each in values),
    }  # fmt: skip
    vars(holder).update(names)
    sys.modules[holder.__name__] = holder  # where dataclasses look
    error: Exception | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.manual_seed(0)
            exec(_code(text, name), vars(holder))
    except Exception as caught:
        error = caught
    finally:
        linecache.cache.pop(name, None)
        del sys.modules[holder.__name__]
        module.set_default_dtype(module.float32)
        module.set_grad_enabled(True)
    return Run(seen, error, _place(error))


def _code(text: str, name: str) -> types.CodeType:
    return compile(text, name, "exec")


def _place(error: BaseException | None) -> str:
    """The innermost line of Flambeau's that an error came through."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    ours = [frame for frame in frames if "/flambeau/" in frame.filename]
    return f"{ours[-1].filename.rpartition('/flambeau/')[2]}:{ours[-1].lineno}" if ours else ""


def _plain(function: Any = None, **options: Any) -> Any:
    return function if function is not None else (lambda each: each)


def judge(program: Program, chaotic: bool = False) -> Failure | None:
    """The first disagreement of the runs of a program; None if there is none.

    If programs of this kind may be chaotic, what rounding explains is no disagreement.
    """
    plain = run(program, flambeau, _plain)
    if pytorch is not None:
        expected = run(program, pytorch, _plain)
        if any(phrase in str(expected.error) for phrase in _ONLY_PYTORCH):
            return None
        found = _disagreement(expected, plain, tolerance(program))
        if found is not None and _SAVED in str(expected.error):
            found = _out_of_place(program, plain)
        if found is not None and found[0] == "value" and chaotic:
            found = _disagreement(expected, plain, tolerance(program), _noisy(program))
        if found is not None:
            return Failure(f"PyTorch and Flambeau within {tolerance(program)}", *found)
    compiled = run(program, flambeau, flambeau.compile)
    found = None if _DOUBLE in str(compiled.error) else _disagreement(plain, compiled, 0.0)
    return None if found is None else Failure("plain and compiled", *found)


def _noisy(program: Program) -> list[list[Any]]:
    """What PyTorch shows in runs whose numbers are changed in the last place."""
    runs = []
    for seed in rounding.seeds():
        with rounding.changed_in_the_last_place(seed):
            runs.append(run(program, pytorch, _plain).seen)
    return runs


def alone(program: Program) -> None:
    """Run a program under Flambeau, as it is and compiled, whatever comes of it."""
    run(program, flambeau, _plain)
    run(program, flambeau, flambeau.compile)


def _out_of_place(program: Program, plain: Run) -> tuple[str, str] | None:
    """Where Flambeau differs from what PyTorch does if no layer works in place. It may be the program that does: then
    neither works in place.
    """
    changed = tuple(line.replace("inplace=True", "inplace=False") for line in program)
    expected = run(changed, pytorch, _plain)
    if _disagreement(expected, plain, tolerance(program)) is None:
        return None
    return _disagreement(expected, run(changed, flambeau, _plain), tolerance(program))


_SAVED = "modified by an inplace operation"
"""What PyTorch refuses where it saved a result that has changed. Flambeau may have saved something else."""

_DOUBLE = "torch.compile does not support double backward"
"""What both libraries refuse of compiled functions."""


_ONLY_PYTORCH = (
    "INTERNAL ASSERT",
    "some elements of the input tensor and the written-to",
    "detached in-place",
    "derivative for aten::",
)
"""Errors after which a program proves nothing: failures of PyTorch's own, and refusals that it alone makes."""


def tolerance(program: Program) -> float:
    """How far results may be apart from PyTorch's, by the coarsest dtype that a program computes in."""
    text = " ".join(program)
    if "autocast" in text or "bfloat16" in text:
        return 0.1
    return 1e-7 if "set_default_dtype(torch.float64)" in text or "dtype=T.float64" in text else 1e-2


def _disagreement(
    expected: Run, actual: Run, relative: float, noisy: Sequence[list[Any]] = ()
) -> tuple[str, str] | None:
    for number, (left, right) in enumerate(zip(expected.seen, actual.seen, strict=False)):
        found = list(differences(left, right, relative, f"seen {number}"))
        near = [each[number] for each in noisy if number < len(each)]
        for path, here, there in found:
            if near and rounding.explains(path, left, near, here, there):
                continue
            if relative and any(isinstance(each, float) and abs(each) > _DIVERGED for each in (here, there)):
                return None
            about = path.rpartition(".")[2].partition("[")[0]
            return about, f"{path}: {_shortened(here)} is not {_shortened(there)}"
    kinds = [type(each.error).__name__ for each in (expected, actual)]
    if kinds[0] != kinds[1]:
        place = actual.place or expected.place
        told = [f"{kind}: {each.error}" for kind, each in zip(kinds, (expected, actual), strict=True)]
        return f"{_ERROR} {' / '.join(kinds)} {place}", " is not ".join(_shortened(each) for each in told)
    if len(expected.seen) != len(actual.seen):
        return "seen", f"{len(expected.seen)} values seen, and {len(actual.seen)}"
    return None


_DIVERGED = 1e20
"""Beyond this, a training program multiplies its rounding errors too: nothing more can be compared with PyTorch."""


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) < 200 else text[:200] + "..."


def differences(left: Any, right: Any, relative: float, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two observations differ; with a tolerance of zero to the bit."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        for key in left:
            yield from differences(left[key], right[key], relative, f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for position, pair in enumerate(zip(left, right, strict=True)):
            yield from differences(*pair, relative, f"{path}[{position}]")
    elif not _same(left, right, relative):
        yield path, left, right


def _same(left: Any, right: Any, relative: float) -> bool:
    if isinstance(left, complex) and isinstance(right, complex):
        return _same(left.real, right.real, relative) and _same(left.imag, right.imag, relative)
    if isinstance(left, float) and isinstance(right, float):
        if relative == 0:
            return repr(left) == repr(right)
        return left == right or (left != left and right != right) or _near(left, right, relative)
    return type(left) is type(right) and left == right


def _near(left: float, right: float, relative: float) -> bool:
    return math.isclose(left, right, rel_tol=relative, abs_tol=relative)


# Shrinking


def shrink(program: Program, judge: Judge, kind: tuple[str, str]) -> Program:
    """The same kind of failure with as few lines as deleting and unwrapping them leaves."""
    size = max(len(program) // 2, 1)
    while True:
        shorter = _pass(program, judge, kind, size)
        if len(shorter) == len(program) and size == 1:
            return program
        program, size = shorter, max(size // 2, 1)


def _pass(program: Program, judge: Judge, kind: tuple[str, str], size: int) -> Program:
    """Try every deletion of so many statements once, from the end, where what nobody needs stands."""
    position = len(program) - 1
    while position >= 0:
        for attempt in _shorter(program, position, size):
            found = judge(attempt)
            if found is not None and found.kind == kind:
                program = attempt
                break
        position = min(position, len(program)) - (1 if size == 1 else size)
    return program


def _shorter(program: Program, position: int, size: int) -> Iterator[Program]:
    """A program without the statements at a position; without a header, its block one level further out."""
    end = position
    for _ in range(size):
        end = _end(program, end) if end < len(program) else end
    yield program[:position] + program[end:]
    end = _end(program, position)
    if size == 1 and end > position + 1:
        inner = tuple(line[4:] for line in program[position + 1 : end])
        yield program[:position] + inner + program[end:]


def _end(program: Program, position: int) -> int:
    """Where the statement at a position ends: behind all lines that stand further in."""
    end = position + 1
    while end < len(program) and indent(program[end]) > indent(program[position]):
        end += 1
    return end


_HEAD = '''\
"""Run me with: torch, flambeau, or compiled."""

import importlib
import sys
import warnings

warnings.simplefilter("ignore")
torch = T = importlib.import_module("torch" if "torch" in sys.argv else "flambeau")
nn, F = torch.nn, torch.nn.functional
see = print
compile = torch.compile if "compiled" in sys.argv else lambda function=None, **options: function or (lambda each: each)
torch.manual_seed(0)

'''


def script(program: Program) -> str:
    """A file that runs by itself."""
    return _HEAD + source(program)
