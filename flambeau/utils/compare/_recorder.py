"""The watcher that records a trace: of each op the module, the user's line, and digests of what it reads and makes.

A tensor is digested once: what an op made and another reads is known by its array, as long as no op has written to its
memory in between.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..._core.backend import to_host
from ..._core.dtype import dtype as Dtype
from ..._core.generator import Generator
from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.process.caller import IS_INTERNAL, line_of
from ..._core.tensor import Tensor
from ..._dispatch.factory import Factory
from ..._dispatch.interpreter import Watcher
from ..._dispatch.op import Op
from ..._dispatch.public.settings import get_num_threads
from ...autograd.engine import _Pass
from ...nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ...version import __flambeau_version__
from ._digest import WIDTH, digest, digests, summary
from ._evidence import EvidenceOfRun
from ._trace import BACKWARD, FORWARD, STEP, Entry, Trace

_ENGINE_CODE = _Pass.run.__code__
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_UNKNOWN = np.full(WIDTH, np.nan)
_LONGEST_TEXT = 200


class Recorder(Watcher):
    """Records a `Trace` of the ops of its thread while it is entered.

    `marks_only` leaves out the ops, so that compiled programs run as they do alone. `evidence` names the ops of a
    second pass whose tensors are kept.
    """

    def __init__(
        self, title: str = "", *, steps: int | None = None, marks_only: bool = False,
        evidence: EvidenceOfRun | None = None,
    ) -> None:  # fmt: skip
        self.trace = Trace(title)
        self.trace.about = {"library": f"Flambeau {__flambeau_version__}"}
        self._steps = steps
        self._marks_only = marks_only
        self._evidence = evidence
        self._step = 0
        self._in_step = 0
        self._modules: list[str] = []
        self._module_names: dict[int, tuple[str, Any]] = {}
        self._parameter_names: dict[int, str] = {}
        self._known: dict[int, tuple[Any, int, int, int | None]] = {}
        """By the id of an array: a weak reference to it, when it was digested, the number of its value, the digest of
        the memory that it lies in."""
        self._written: dict[int, int] = {}
        """By the id of the object that owns the memory: when an op wrote to it last."""
        self._clock = 0
        self._texts: dict[Any, str] = {}
        self._lines: dict[tuple[CodeType, int], str] = {}
        self._origins: dict[int, tuple[str, str]] = {}
        """By the sequence number of a node: the module and the line of the op that recorded it."""
        self._handles: list[Any] = []
        self._is_entered = False

    # ----- being entered ----------------------------------------------------------------------------------------

    def __enter__(self) -> Recorder:
        from ...optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        if not self._marks_only:
            self._handles.append(register_module_forward_pre_hook(self._enter_module))
            self._handles.append(register_module_forward_hook(self._leave_module, always_call=True))
            super().__enter__()
            self._is_entered = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_entered:
            super().__exit__(*exception)
            self._is_entered = False
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    @property
    def _is_over(self) -> bool:
        return self._steps is not None and self._step >= self._steps

    # ----- ops --------------------------------------------------------------------------------------------------

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        if self._is_over:
            return
        writes, number = op.writes, len(self.trace.entries)
        read: list[int] = []
        written: list[Tensor] = []
        others: list[Any] = []
        for position, each in enumerate(args):
            if isinstance(each, Tensor):
                if position in writes:
                    read.append(self._before(each))
                    written.append(each)
                else:
                    read.append(self._value(each, -1))
            elif type(each) is list or type(each) is tuple:
                inner = list(_tensors(each))
                if position in writes:
                    read += [self._before(tensor) for tensor in inner]
                    written += inner
                else:
                    read += [self._value(tensor, -1) for tensor in inner]
                if not inner:
                    others.append(each)
            else:
                others.append(each)
        if written:
            self._clock += 1
            for tensor in written:
                self._written[id(_owner(tensor._array))] = self._clock
        made = [each for each in _tensors((result,)) if all(each is not other for other in written)]
        for each in made:
            if any(each is other for other in args):  # sums of gradients may take one of them in place
                self._clock += 1
                self._written[id(_owner(each._array))] = self._clock
        if isinstance(op, Factory) and any(each is None for each in others):  # memory that nobody wrote yet
            outputs = tuple([self._unwritten(each, number) for each in made])
        else:
            memory = self._memory_of(args[0]) if op.is_view else None
            outputs = tuple([self._value(each, number, memory) for each in (*written, *made)])
        module, line, phase = self._where(made[0] if made else None)
        text = self._text(op, others)
        self.trace.entries.append(Entry(op.name, module, line, text, self._step, phase, tuple(read), outputs))
        if self._evidence is not None and self._evidence.wants(number):
            self._evidence.keep(self, number, op, args, read, [*written, *made])

    def _where(self, made: Tensor | None) -> tuple[str, str, int]:
        """The module and the line that an op belongs to, and the part of the training step."""
        backward = THREAD.modes.backward_pass is not None
        frame: FrameType | None = sys._getframe(3)
        module = self._modules[-1] if self._modules else ""
        line = ""
        while frame is not None:
            code = frame.f_code
            if not IS_INTERNAL[code.co_filename]:
                line = self._line(code, frame.f_lasti)
                break
            if backward and code is _ENGINE_CODE:
                node = frame.f_locals.get("node")
                origin = self._origins.get(getattr(node, "sequence", -1))
                if origin is not None:
                    return (*origin, BACKWARD)
            frame = frame.f_back
        if made is not None and made._grad_fn is not None:
            self._origins[made._grad_fn.sequence] = module, line
        return module, line, STEP if self._in_step else BACKWARD if backward else FORWARD

    def _line(self, code: CodeType, instruction: int) -> str:
        found = self._lines.get((code, instruction))
        if found is None:
            file, number, source = line_of((code, instruction))
            found = self._lines[code, instruction] = f"{_short(file)}:{number}: {source}"
        return found

    def _text(self, op: Op, others: list[Any]) -> str:
        """The arguments that are no tensors, as text; the same of the same call in another run."""
        try:
            key = op, tuple(others)
            found = self._texts.get(key)
            if found is None:
                found = self._texts[key] = ", ".join(map(_described, others))
        except TypeError:  # lists among them
            found = ", ".join(map(_described, others))
        return found

    # ----- values -----------------------------------------------------------------------------------------------

    def _memory_of(self, tensor: Any) -> tuple[int, int] | None:
        """The digest of the memory that a tensor lies in, without gaps, and its size."""
        array = getattr(tensor, "_array", None)
        known = self._known.get(id(array))
        return None if known is None or known[0]() is not array or known[3] is None else (known[3], array.size)

    def _value(self, tensor: Tensor, producer: int, memory: tuple[int, int] | None = None) -> int:
        """The number of the value that a tensor has now; `memory` is that of a tensor on which it is a view."""
        array = getattr(tensor, "_array", None)
        known = self._known.get(id(array))
        if known is not None and known[0]() is array and self._written.get(id(_owner(array)), 0) <= known[1]:
            return known[2]
        kind = tensor._kind
        if kind.dataless or tensor._is_wrapper or not hasattr(array, "strides"):
            return self.trace.add_value(0, _UNKNOWN, f"{kind.dtype}{list(tensor.shape)}", producer)
        host = to_host(array)
        if host.dtype.hasobject:
            return self.trace.add_value(0, _UNKNOWN, f"{kind.dtype}{list(tensor.shape)}", producer)
        text = f"{str(kind.dtype)[6:]}{list(host.shape)}"
        whole, total = digests(host, memory[0] if memory is not None and memory[1] == host.size else None)
        number = self.trace.add_value(total, summary(host), text, producer)
        with contextlib.suppress(TypeError):  # an array of a class without weak references is digested each time
            self._known[id(array)] = weakref.ref(array), self._clock, number, whole
        if self._evidence is not None:
            self._evidence.made(number, host)
        return number

    def _unwritten(self, tensor: Tensor, producer: int) -> int:
        """A value for a tensor whose elements are what the memory happens to hold."""
        text = f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"
        number = self.trace.add_value(0, _UNKNOWN, text, producer)
        with contextlib.suppress(TypeError):
            self._known[id(tensor._array)] = weakref.ref(tensor._array), self._clock, number, None
        return number

    def _before(self, tensor: Tensor) -> int:
        """The value that a tensor had before an op wrote to it; -1: nobody has looked at it before."""
        known = self._known.get(id(tensor._array))
        return known[2] if known is not None and known[0]() is tensor._array else -1

    def mark(self, name: str, module: str, arguments: str, tensors: Sequence[Tensor]) -> None:
        """Add an entry that is no op: the values of tensors at this moment."""
        if self._is_over:
            return
        values = tuple([self._value(each, -1) for each in tensors])
        phase = STEP if self._in_step or name in ("gradient", "parameter") else FORWARD
        self.trace.entries.append(Entry(name, module, "", arguments, self._step, phase, (), values))

    # ----- modules and optimizers -------------------------------------------------------------------------------

    def _enter_module(self, module: Any, inputs: Any) -> None:
        found = self._module_names.get(id(module))
        if found is None:
            root = type(module).__name__
            for name, inner in module.named_modules():
                path = f"{root}.{name}" if name else root
                self._module_names.setdefault(id(inner), (path, inner))  # with the module, so that its id stays its own
            for name, parameter in module.named_parameters():
                self._parameter_names.setdefault(id(parameter), name)
            found = self._module_names[id(module)]
        self._modules.append(found[0])

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        path = self._modules.pop()
        tensors = list(_tensors((output,)))
        if tensors:
            self.mark("module", path, type(module).__name__, tensors)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._mark_parameters("gradient", optimizer, lambda each: each.grad)
        self._in_step += 1

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._in_step -= 1
        self._mark_parameters("parameter", optimizer, lambda each: each)
        self._step += 1
        self._origins.clear()

    def _mark_parameters(self, name: str, optimizer: Any, take: Callable[[Any], Any]) -> None:
        number = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                tensor = take(parameter)
                if tensor is not None:
                    path = self._parameter_names.get(id(parameter), f"parameter {number}")
                    self.mark(name, path, "", [tensor])
                number += 1

    def finish(self) -> Trace:
        """The trace, when the run is over."""
        self.trace.about["threads"] = get_num_threads()
        return self.trace


def _tensors(values: Any) -> Iterator[Tensor]:
    """The tensors in a tuple, in lists and dicts in it."""
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _tensors(each)
        elif isinstance(each, dict):
            yield from _tensors(tuple(each.values()))


def _owner(array: Any) -> Any:
    """The object that has the memory of an array."""
    base = getattr(array, "base", None)
    while base is not None:
        array = base
        base = getattr(array, "base", None)
    return array


def _short(file: str) -> str:
    """A file's name as a user writes it."""
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return file if relative.startswith("..") else relative


def _described(value: Any) -> str:
    """A value that is no tensor, without addresses in memory and devices: they differ between runs that do the same."""
    if isinstance(value, Kind):
        return str(value.dtype)
    if isinstance(value, (Dtype, np.dtype)):
        return str(value)
    if isinstance(value, Generator):
        return "generator"
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype}{list(value.shape)} {digest(value):016x}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_described, value))}]"
    if callable(value) and hasattr(value, "__qualname__"):
        cells = [each.cell_contents for each in getattr(value, "__closure__", None) or ()]
        plain = [each for each in cells if isinstance(each, (int, float, str, bool, tuple, type(None)))]
        return f"{value.__qualname__}{plain}"
    return _ADDRESS.sub("", repr(value))[:_LONGEST_TEXT]
