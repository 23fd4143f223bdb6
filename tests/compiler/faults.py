"""Every function of the compiler made to raise in turn: programs go on, and do what the plain ones do.

`python -m tests.compiler.faults` tries all of them, `python -m tests.compiler.faults _record` those of some files.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil
import sys
import warnings
from types import CodeType, FunctionType
from typing import Any

import flambeau as torch
import flambeau.compiler
from flambeau.compiler._marks import trust

from .fault_programs import PROGRAMS

CALLS = 10
LATER = 8
"""In this call a fault begins that is not there from the start: programs run already."""

HITS: list[str] = []


class Injected(Exception):
    """What a function raises that is made to fail."""


def hit(name: str) -> Injected:
    HITS.append(name)
    return Injected(name)


QUIET = ("plan.builder:", "plan.stand_in:", "plan.schedule:", "plan.families:", "plan.first_run:_",
         "capture.abstract_arrays:is_on_host", "optim._prepared:_Seen.run", "capture.recompiles:",
         "capture.layout:Layout.__str__", "emit.places:Places._forget")  # fmt: skip
"""Where an op or a step is tried out: what raises something there has no place on a schedule, or is not prepared. And
where a sentence about a recompile is made, for which there is another one. Of what a weak reference calls, Python tells
by itself."""


TOOLS = ("save", "load", "archive", "machine_code", "difference", "explain", "minify", "stages", "verify",
         "full_recorder", "_custom_backends", "config", "_entry", "_marks", "_stance", "_errors", "resume", "attempt",
         "_logs", "_registry", "trace", "operators", "ops")  # fmt: skip
"""Files that are asked for by name, that are entered before anything runs, or that act when something has failed."""

GUARDS = frozenset(
    (
        "Compiled.__call__", "Compiled._guarded", "Compiled._rescued", "Compiled._leave_alone",
        "Compiled._name", "Compiled.__init__", "Compiled._compared", "Compiled._is_compiled_in",
        "Compiled._of_programs", "Compiled._by_what_there_is", "Compiled._ended", "Compiled._unsupported",
        "Compiled.forget", "Compiled._note", "Compiled._parts_as_they_are", "Watch._note", "Watch._trace",
        "Watch._on_end", "Watch._on_end_outside", "Watch._switch", "Callees.__call__",
        "CompiledFunctionBackward.apply", "CompiledFunctionBackward.release", "FreedBackward.apply",
        "Careful.run", "Careful.failed", "Region.in_other_layouts", "Region.backward_without",
        "Layouts.one_by_one", "Looks.run", "Looks.begins", "Looks.ends", "Looks._failed", "Looks.undo",
        "Seen.ran", "Watch.stop", "LineRuns._trace", "LineRuns._on_event", "Recorder.run_outside",
        "Recorder._guarded", "Recorder.misses", "Recorder.reads_offset", "PreparedStep._failed",
        "FirstRun._failed", "go_back",
    )
)  # fmt: skip
"""What catches the errors of the others, and what users or the engine call themselves."""

ASKED = frozenset(
    (
        "Compiled.__reduce__", "Compiled._options", "Compiled.all_programs", "Compiled.all_reasons",
        "Compiled.programs", "Compiled.sizes_waiting", "Compiled.slower", "_made_anew", "Callees.compiled",
        "Parts.compiled", "_reshaped",
    )
)  # fmt: skip
"""What users ask for, in explanations or by copying; and the kernel of an op."""


@functools.cache
def functions() -> dict[str, FunctionType]:
    """The functions of the compiler and of prepared steps, by their files and names."""
    names = [each.name for each in pkgutil.walk_packages(flambeau.compiler.__path__, "flambeau.compiler.")]
    found: dict[str, FunctionType] = {}
    for module in map(importlib.import_module, [*names, "flambeau.optim._prepared"]):
        short = module.__name__.removeprefix("flambeau.").removeprefix("compiler.")
        if short.split(".")[-1] in TOOLS or short.startswith("plan.device"):
            continue
        for value in vars(module).values():
            inside = [value, *(vars(value).values() if isinstance(value, type) else ())]
            for each in inside:
                function = inspect.unwrap(getattr(each, "fget", getattr(each, "__func__", each)))
                is_function = isinstance(function, FunctionType) and function.__module__ == module.__name__
                if (
                    is_function
                    and function.__qualname__ not in GUARDS | ASKED
                    and function.__code__.co_filename == module.__file__
                ):
                    found[f"{short}:{function.__qualname__}"] = function
    return found


def caches() -> list[Any]:
    """What the compiler has computed once in this process, and would not compute again."""
    modules = {function.__module__ for function in functions().values()}
    found = [each for name in sorted(modules) for each in vars(sys.modules[name]).values()]
    return [each for each in found if hasattr(each, "cache_clear")]


def _raising(name: str, like: CodeType) -> CodeType:
    """Code that raises, with the closure of other code."""
    free = ", ".join(like.co_freevars)
    body = f"({free});" if free else ""
    error = f"__import__({__name__!r}, None, None, ['hit']).hit({name!r})"
    # Code of a generator can only be replaced by code of a generator.
    end = "; yield" if like.co_flags & inspect.CO_GENERATOR else ""
    text = f"def outer({free}):\n def inner(*args, **kwargs): {body} raise {error}{end}\n"
    outer = next(each for each in compile(text, "<fault>", "exec").co_consts if isinstance(each, CodeType))
    return next(each for each in outer.co_consts if isinstance(each, CodeType))


class Fault:
    """Lets a function raise from some moment on, until it is `over`."""

    def __init__(self, name: str) -> None:
        self.name, self._function = name, functions()[name]
        self._code = self._function.__code__

    def begin(self) -> None:
        self._function.__code__ = _raising(self.name, self._code)

    def over(self) -> None:
        self._function.__code__ = self._code


def _bits(value: Any) -> Any:
    return value.detach().numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value)


def observed(name: str, compiled: bool, fault: Fault | None = None, begins: int = 0) -> list[Any]:
    """What can be seen after each call of a program; from the call `begins` on, a function raises."""
    kind, options = PROGRAMS[name]
    torch.manual_seed(0)
    made = kind()
    run: Any = made.function()
    if compiled:
        run = torch.compile(run, **options)
    seen: list[Any] = []
    for number in range(CALLS):
        if fault is not None and number == begins:
            fault.begin()
        result = made.call(run, number)
        tensors = [*made.net.parameters(), *made.net.buffers()]
        states = [each for state in made.opt.state.values() for each in state.values()]
        grads = [each.grad for each in made.net.parameters()]
        seen.append([_bits(each) for each in (result, *tensors, *grads, *states, torch.get_rng_state())])
    return seen


class Found:
    """Names that stay: a call that ends at a graph break puts back what it has changed, but for what lies in slots."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: set[str] = set()

    def add(self, name: str) -> None:
        self.names.add(name)


class Tripwires:
    """Lets functions say that they have been called: each is what it was from its first call on."""

    def __init__(self) -> None:
        self.found = Found()
        self._codes = {name: function.__code__ for name, function in functions().items()}

    def __enter__(self) -> Tripwires:
        SET.append(self)
        for each in caches():
            each.cache_clear()
        for name, code in self._codes.items():
            if not code.co_flags & (inspect.CO_GENERATOR | inspect.CO_NESTED):
                functions()[name].__code__ = _tripping(name, code)
        return self

    def __exit__(self, *exception: object) -> None:
        SET.remove(self)
        for name, code in self._codes.items():
            functions()[name].__code__ = code

    def called(self, name: str) -> FunctionType:
        """The function of a name as it was."""
        function = functions()[name]
        function.__code__ = self._codes[name]
        self.found.add(name)
        return function


trust(Tripwires.called)  # it is no code of the program's
SET: list[Tripwires] = []


def _tripping(name: str, like: CodeType) -> CodeType:
    """Code that puts back what it stands for, and calls it."""
    free = ", ".join(like.co_freevars)
    body = f"({free});" if free else ""
    again = f"__import__({__name__!r}, None, None, ['SET']).SET[-1].called({name!r})(*args, **kwargs)"
    text = f"def outer({free}):\n def inner(*args, **kwargs): {body} return {again}\n"
    outer = next(each for each in compile(text, like.co_filename, "exec").co_consts if isinstance(each, CodeType))
    return next(each for each in outer.co_consts if isinstance(each, CodeType))


def entered(name: str) -> set[str]:
    """The functions that run in a program: beside a debugger, whom the compiler leaves its place, and without one."""
    with Tripwires() as wires:
        observed(name, compiled=True)
    seen: set[int] = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        seen.add(id(frame.f_code))

    sys.settrace(note)
    try:
        observed(name, compiled=True)
    finally:
        sys.settrace(None)
    return wires.found.names | {each for each, function in functions().items() if id(function.__code__) in seen}


def fault_of(name: str, function: str, begins: int, plain: list[Any]) -> str | None:
    """What goes wrong in a program if a function raises; None: nothing, or it never ran."""
    HITS.clear()
    fault = Fault(function)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = observed(name, True, fault, begins)
    except BaseException as error:
        return f"{name}, {function} from call {begins}: {type(error).__name__}: {error}"
    finally:
        fault.over()
        sys.setprofile(None)
    if found != plain:
        first = next(number for number, (one, other) in enumerate(zip(found, plain, strict=True)) if one != other)
        return f"{name}, {function} from call {begins}: other results in call {first}"
    warned = [each for each in told if "the compiler failed" in str(each.message)]
    if HITS and not warned and not function.startswith(QUIET):
        return f"{name}, {function} from call {begins}: raised, and nobody was told"
    if not torch.is_grad_enabled() or not gc.isenabled():
        return f"{name}, {function} from call {begins}: gradients or the collector are off"
    return None


def sweep(name: str, every: int = 1, only: str = "") -> tuple[int, list[str]]:
    """How many functions were made to raise in a program, and what went wrong."""
    plain = observed(name, compiled=False)
    ran = entered(name)
    chosen = [each for each in functions() if each in ran and only in each][::every]
    found = [fault_of(name, each, begins, plain) for each in chosen for begins in (0, LATER)]
    return len(chosen), [each for each in found if each is not None]


if __name__ == "__main__":
    for program in PROGRAMS:
        count, wrong = sweep(program, only=sys.argv[1] if len(sys.argv) > 1 else "")
        print(f"{program}: {count} functions, {len(wrong)} failures", flush=True)
        for each in wrong:
            print(" ", each, flush=True)
