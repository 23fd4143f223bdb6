"""What became of the calls of a compiled function: as text, and as one web page that needs nothing else."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._core.text.html import framed
from .._marks import COMPILED
from ..capture.layout import Layout
from ..emit.stages import Stage, Step, joined

_LONGEST = 90


class Explanation(str):
    """A text for people; its attributes are for programs, and `save` writes a page with everything on it."""

    __slots__ = ("is_whole", "programs", "reasons", "recompiles", "subject")

    subject: str
    """The name of the function."""
    programs: list[Callable[..., Any]]
    """The functions that run in place of calls. Each has its `source` and its `stages`."""
    reasons: list[str]
    """Why calls were not compiled, those of parts included."""
    recompiles: list[str]
    """Which value differed from that of an earlier call, for each call that was recorded though there were programs."""
    is_whole: bool
    """Whether calls are compiled, and none of them in parts."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page: graphs, checks, breaks, kernels with their source, time and memory."""
        Path(path).write_text(self._page(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """What notebooks show: the page."""
        return framed(self._page())

    def _page(self) -> str:
        document = {
            "title": self.subject,
            "summary": self.splitlines()[0],
            "reasons": [[count, text] for text, count in _counted(self.reasons)],
            "programs": [_program(each) for each in self.programs],
        }
        data = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")  # no text may end the element
        template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        template = template.replace("<title>Compiled</title>", f"<title>{html.escape(self.subject)}</title>")
        return template.replace("__DATA__", data)

    def table(self) -> str:
        """The stages of each program, line by line: time, memory, what it is, and the user's line."""
        lines = []
        for number, program in enumerate(self.programs):
            lines.append(f"program {number}: {len(vars(program)['checks'])} checks")
            lines += [f"  {_row(each)}" for each in joined(vars(program)["stages"])]
        return "\n".join(lines)


def explain(compiled: Any, *args: Any, **kwargs: Any) -> Explanation:
    """What became of the calls of a compiled function or module: its programs as source, and why others have none.

    Its `table()` lists what the programs do, `save("page.html")` shows everything in a browser. With arguments, the
    function is called some more times with them, to measure how long each step of its programs takes.

    >>> double = flambeau.compile(lambda x: x * 2)
    >>> for _ in range(4):
    ...     _ = double(flambeau.ones(2))
    >>> flambeau.compiler.explain(double).splitlines()[0]
    '1 program, no call that could not be compiled'

    Args:
        compiled: a compiled function or module, or a plain one.
        *args: arguments of a call to explain.
        **kwargs: its keyword arguments.

    Returns:
        a text with the programs and the reasons.
    """
    run = _behind(compiled)
    if run is None:
        raise TypeError(f"explain() takes what torch.compile has given, not {compiled!r}")
    if args or kwargs:
        from .verify import measure

        measure(run, args, kwargs)
    return explanation_of(run)


def _behind(compiled: Any) -> Any:
    """The `Compiled` of what `torch.compile` or `Module.compile` has given; None: it is none of these."""
    own = getattr(compiled, "__dict__", {})
    for each in (compiled, own.get("_run"), getattr(own.get("forward"), "run", None), own.get("run")):
        found = getattr(each, "__dict__", {}).get("_run", each)
        if isinstance(found, Hashable) and found in COMPILED:
            return found
    return None


def explanation_of(compiled: Any) -> Explanation:
    """The programs of a `Compiled`, and of its parts."""
    programs: Sequence[Any] = compiled.all_programs
    counted = f"{len(programs)} program{'s' * (len(programs) != 1)}"
    refused = compiled.reasons
    calls = f"{len(refused) or 'no'} call{'s' * (len(refused) > 1)} that could not be compiled"
    whys = "".join([f"\n- {each}" for each in refused])
    whys += "".join([f"\n- recorded again: {each}" for each in compiled.recompiles])
    if waiting := compiled.sizes_waiting:
        whys += f"\n- {waiting} size{'s' * (waiting > 1)} without a row in the program for all sizes: calls with sizes "
        whys += "that come seldom, as those of a growing cache, run eagerly, since recording them takes longer"
    if (slower := compiled.slower) is not None:
        whys += f"\n- {slower}"
    if not programs and not refused:
        whys = "\n- too few calls: the second is recorded, the third runs its program"
    made = Explanation(
        "\n\n".join([f"{counted}, {calls}{whys}", *[each for program in programs for each in _shown(program)]])
    )
    function = compiled.function
    made.subject = getattr(function, "__qualname__", type(function).__qualname__)
    made.programs = list(programs)
    made.reasons = compiled.all_reasons
    made.recompiles = compiled.recompiles
    made.is_whole = bool(compiled.programs) and compiled.parts is None
    return made


def _shown(program: Any) -> list[str]:
    """A program as source, and what devices do of it by themselves."""
    inside = [f"# {each.describe()}\n{each.listed.source.rstrip()}" for each in program.device_segments]
    return [program.source.rstrip(), *inside]


def _counted(texts: Sequence[str]) -> list[tuple[str, int]]:
    return [(each, texts.count(each)) for each in dict.fromkeys(texts)]


def _row(stage: Stage) -> str:
    took = " " * 10 if stage.seconds is None else f"{stage.seconds * 1e6:7.1f} us"
    file, number, _ = stage.steps[0].line if stage.steps else ("", 0, "")
    where = f"  {os.path.basename(file)}:{number}" if file else ""
    return f"{took} {_size(stage.scratch + stage.results):>8}  {stage.kind:8} {stage.name}{where}"


def _size(count: int) -> str:
    return (
        f"{count} B"
        if count < 1 << 10
        else f"{count / (1 << 10):.1f} K"
        if count < 1 << 20
        else f"{count / (1 << 20):.1f} M"
    )


# ----- the page ---------------------------------------------------------------------------------------------------


def _program(program: Callable[..., Any]) -> dict[str, Any]:
    known = vars(program)
    return {
        "checks": [_readable(each, program.__globals__) for each in known["checks"]],
        "source": known["source"],
        "stages": [_stage(each) for each in joined(known["stages"])],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "kind": stage.kind,
        "backward": stage.backward,
        "scratch": stage.scratch,
        "results": stage.results,
        "seconds": stage.seconds,
        "steps": [_step(each) for each in stage.steps],
        "calls": [_call(function, args) for function, args in stage.calls],
    }


def _step(step: Step) -> dict[str, Any]:
    file, number, text = step.line
    shapes = ", ".join([_shape(name, sizes) for name, sizes in step.shapes])
    place = f"{os.path.basename(file)}:{number}" if file else ""
    return {"name": step.name, "given": step.given, "made": step.made, "shapes": shapes, "place": place, "line": text}


def _shape(name: str, sizes: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, sizes))}]"


def _call(function: Any, args: tuple[Any, ...]) -> dict[str, str]:
    """A function that a schedule calls: its name, the arrays that it is given, and its source if it was generated."""
    generated = _generated().get(id(function))
    name = getattr(function, "__qualname__", getattr(function, "__name__", type(function).__name__))
    given = ", ".join([_argument(each) for each in args])
    source = ""
    if generated is not None:
        kernel, parameters = generated
        programs = [each for each in parameters if hasattr(each, "steps")]
        source = _steps(programs[0]) if programs else f"{kernel.name}{parameters!r}" if parameters else ""
    return {"name": name, "given": given, "source": source}


def _generated() -> dict[int, Any]:
    """The generated kernels of this process, by the identity of what is called."""
    from ..._codegen.kernel import KERNELS

    return {id(made): (kernel, parameters) for kernel in KERNELS.values() for parameters, made in kernel.compiled()}


def _argument(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return _shape(value.dtype.name, value.shape)
    return f"({', '.join(map(_argument, value))})" if isinstance(value, tuple) else _told(value)


def _steps(program: Any) -> str:
    """What a generated kernel computes for one element."""
    lines = []
    for number, (name, kind, *operands) in enumerate(program.steps):
        if name == "input":
            text = f"input {operands[0]}"
        elif name == "constant":
            text = str(float.fromhex(operands[0])) if kind.startswith("float") else operands[0]
        else:
            text = f"{name}({', '.join([f't{each}' for each in operands])})"
        lines.append(f"t{number}: {kind} = {text}")
    return "\n".join([*lines, f"store {', '.join([f't{each}' for each in program.results])}"])


_NAME = re.compile(r"\b[ck]\d+\b")


def _readable(line: str, constants: dict[str, Any]) -> str:
    """A check with constants in the place of their names."""
    return _NAME.sub(lambda match: _told(constants.get(match[0], match[0])), line)


def _told(value: Any) -> str:
    if isinstance(value, Layout):
        return str(value)
    if isinstance(value, Tensor):
        return f"<{type(value).__name__} {_shape(value.dtype.name, value._array.shape)}>"
    if isinstance(value, np.ndarray):
        return f"<array {_shape(value.dtype.name, value.shape)}>"
    if hasattr(value, "__qualname__"):
        return f"<{value.__qualname__}>"
    if isinstance(value, (bool, int, float, complex, str, bytes, list, tuple)):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"<{type(value).__name__}>"
