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
from collections import OrderedDict
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import flambeau as torch
import flambeau.compiler
from flambeau import nn

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
         "_logs")  # fmt: skip
"""Files that are asked for by name, that are entered before anything runs, or that act when something has failed."""

GUARDS = frozenset(
    (
        "Compiled.__call__", "Compiled._guarded", "Compiled._rescued", "Compiled._leave_alone", "Compiled._name",
        "Compiled.__init__", "Compiled.forget", "Compiled._note", "Compiled._parts_as_they_are", "Watch._note",
        "Watch._trace", "Watch._on_end", "Watch._on_end_outside", "Watch._switch", "Callees.__call__",
        "CompiledFunctionBackward.apply", "CompiledFunctionBackward.release", "FreedBackward.apply", "Careful.run",
        "Region.in_other_layouts", "Layouts.one_by_one", "Looks.run", "Seen.ran", "Watch.stop", "LineRuns._trace",
        "LineRuns._on_event",
        "Recorder.run_outside", "Recorder._guarded", "Recorder.misses", "Recorder.reads_offset",
        "PreparedStep._failed", "FirstRun._failed",
    )
)  # fmt: skip
"""What catches the errors of the others, and what users or the engine call themselves."""


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
                    and function.__qualname__ not in GUARDS
                    and function.__code__.co_filename == module.__file__
                ):
                    found[f"{short}:{function.__qualname__}"] = function
    return found


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


class Step:
    """A whole step: buffers, random numbers, clipping, an optimizer; it returns a number."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.ReLU(), nn.Linear(6, 2))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=0.01)

    def function(self) -> Callable[..., Any]:
        net, opt = self.net, self.opt

        def step(x: Any) -> Any:
            opt.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            opt.step()
            return loss.item()

        return step

    def call(self, run: Any, number: int) -> Any:
        return run(torch.randn(5, 4))


class ZeroedLast(Step):
    """A step that forgets gradients last, and returns its loss."""

    def function(self) -> Callable[..., Any]:
        net, opt = self.net, self.opt

        def step(x: Any) -> Any:
            loss = net(x).pow(2).mean()
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=False)
            return loss

        return step


class Module(Step):
    """A module, with the loss, the backward pass and the step outside."""

    def function(self) -> Callable[..., Any]:
        return self.net

    def call(self, run: Any, number: int) -> Any:
        self.opt.zero_grad()
        loss = run(torch.randn(5, 4)).pow(2).mean()
        loss.backward()
        self.opt.step()
        return loss


class Parts(Step):
    """A function with statements that are not compiled, and a look at elements."""

    def function(self) -> Callable[..., Any]:
        net, seen = self.net, []

        def scaled(x: Any) -> Any:
            return torch.tanh(x) * 2

        def f(x: Any) -> Any:
            y = torch.relu(net(x)) + 1
            seen.append(float(y.detach().sum()))
            z = scaled(y)
            return z * torch.rand(2) if x.sum() > -1000 else z

        return f


class Sizes(Step):
    """A module of which no two calls have the same size."""

    def call(self, run: Any, number: int) -> Any:
        return run(torch.randn(3 + number % 4, 4)).sum().backward()

    def function(self) -> Callable[..., Any]:
        return self.net


class Output(OrderedDict[str, Any]):
    """What a model of a library returns."""

    extra: Any = None


class Window:
    """A layer of a cache, which counts what it has seen."""

    def __init__(self) -> None:
        self.rows: Any = torch.zeros(0, 2)
        self.seen = 0

    def update(self, rows: Any) -> Any:
        self.seen += rows.shape[0]
        whole = torch.cat([self.rows, rows])
        self.rows = whole[-4:]
        return whole


class Windows(Step):
    """A model that returns an object of its own, and changes a cache that is new every five calls."""

    def __init__(self) -> None:
        super().__init__()
        self.net.eval()
        self.window = Window()

    def function(self) -> Callable[..., Any]:
        net = self.net

        def f(x: Any, window: Window) -> Any:
            found = Output(rows=window.update(net(x)), count=window.seen)
            found.extra = [found["rows"].sum(0), {"kept": window.rows.shape}]
            return found

        return f

    def call(self, run: Any, number: int) -> Any:
        if number % 5 == 0:
            self.window = Window()
        with torch.no_grad():
            found = run(torch.randn(1, 4), self.window)
        return torch.cat([found["rows"], found.extra[0][None], torch.full((1, 2), float(found["count"]))])


class Experts(Step):
    """A model that looks at other elements in each call, counts its calls, and is told to do something else."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.seen = 0, [0.0]

    def function(self) -> Callable[..., Any]:
        net, state = self.net, self

        def chosen(x: Any) -> Any:
            result = x * 0
            for number in range(5):
                (rows,) = torch.where((x[:, 0].abs() * 4).long() == number)
                result[rows] = x[rows] * (number + 1)
            return result

        def f(x: Any, scale: float, flag: bool) -> Any:
            y = net(chosen(torch.tanh(x)))
            state.calls += 1
            state.seen.append(scale)
            z = {"y": y.detach() * scale, "z": (y.exp() if flag else y.cos()).t()}
            print(end="")
            return [each * 2 for each in z.values()]

        return f

    def call(self, run: Any, number: int) -> Any:
        found = run(torch.randn(8, 4), float(number // 3), number % 4 > 1)
        self.opt.zero_grad()
        found[1].square().mean().backward()
        self.opt.step()
        return torch.cat([found[0], found[1].t(), torch.tensor([[float(self.calls), float(len(self.seen))]])])


class Heads(Step):
    """Attention with shared keys under autocast and without, and a function that reads what it finds in modules."""

    def function(self) -> Callable[..., Any]:
        net = self.net

        def f(x: Any, cache: Any) -> Any:
            q = net(x).reshape(1, 4, -1, 2)
            k = cache[:, :, None].expand(1, 2, 2, cache.shape[2], 2).reshape(1, 4, -1, 2)
            y = nn.functional.scaled_dot_product_attention(q, k, k)
            cache[:, :, :1] += 1
            return (y.transpose(1, 2).reshape(1, -1) @ torch.ones(y.numel(), 3)).float(), k.max(-1).values

        return f

    def call(self, run: Any, number: int) -> Any:
        self.net.eval()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=number % 3 > 0):
            found = run(torch.randn(4, 4), torch.randn(1, 2, 6, 2))
        return torch.cat([each.float().flatten() for each in found])


PROGRAMS: dict[str, tuple[type[Step], dict[str, Any]]] = {
    "step": (Step, {}),
    "zeroed last": (ZeroedLast, {}),
    "module": (Module, {}),
    "parts": (Parts, {}),
    "sizes": (Sizes, {"dynamic": True}),
    "windows": (Windows, {"dynamic": True}),
    "experts": (Experts, {}),
    "heads": (Heads, {}),
}


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


class Tripwires:
    """Lets functions say that they have been called: each is what it was from its first call on."""

    def __init__(self) -> None:
        self.found: set[CodeType] = set()
        self._codes = {name: function.__code__ for name, function in functions().items()}

    def __enter__(self) -> Tripwires:
        SET.append(self)
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
        self.found.add(function.__code__)
        return function


SET: list[Tripwires] = []


def _tripping(name: str, like: CodeType) -> CodeType:
    """Code that puts back what it stands for, and calls it."""
    free = ", ".join(like.co_freevars)
    body = f"({free});" if free else ""
    again = f"__import__({__name__!r}, None, None, ['SET']).SET[-1].called({name!r})(*args, **kwargs)"
    text = f"def outer({free}):\n def inner(*args, **kwargs): {body} return {again}\n"
    outer = next(each for each in compile(text, like.co_filename, "exec").co_consts if isinstance(each, CodeType))
    return next(each for each in outer.co_consts if isinstance(each, CodeType))


def entered(name: str) -> set[CodeType]:
    """The code that runs in a program: beside a debugger, whom the compiler leaves its place, and without one."""
    with Tripwires() as wires:
        observed(name, compiled=True)
    found = wires.found

    def note(frame: Any, event: str, argument: Any) -> None:
        found.add(frame.f_code)

    sys.settrace(note)
    try:
        observed(name, compiled=True)
    finally:
        sys.settrace(None)
    return found


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
    chosen = [each for each, function in functions().items() if function.__code__ in ran and only in each][::every]
    found = [fault_of(name, each, begins, plain) for each in chosen for begins in (0, LATER)]
    return len(chosen), [each for each in found if each is not None]


if __name__ == "__main__":
    for program in PROGRAMS:
        count, wrong = sweep(program, only=sys.argv[1] if len(sys.argv) > 1 else "")
        print(f"{program}: {count} functions, {len(wrong)} failures", flush=True)
        for each in wrong:
            print(" ", each, flush=True)
