"""Programs in files, compiled ahead of time: ops, weights, the form of the call, and machine code.

A file is a ZIP archive: `program.json` has the ops, their arguments and the shapes of all arrays; `weights.safetensors`
the tensors; `code/` the machine code of the kernels for one kind of processor; `checksums.json` the digests of all
these. What is data is read as data. The machine code is code: only files of those whom one trusts are to be loaded, and
`aot_load` says so.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..._backends.tiers import available
from ..._core.device import CPU, memory_format
from ..._core.dtype import dtype
from ..._core.kind import Kind, kind_of_array
from ..._core.modes import THREAD
from ..._core.release import RELEASE
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..._dispatch.op import Op
from .._compiled import Compiled
from .._errors import Unsupported
from ..emit.source import Source
from ..emit.write import Recording
from ..passes.dead import without_dead
from ..plan.segment import Segment
from ..program.items import Call, Item, Value
from ..program.reads import Written
from .archive import pack

VERSION = 1


def aot_compile(
    target: Any, args: tuple[Any, ...], path: str | os.PathLike[str], kwargs: dict[str, Any] | None = None
) -> Path:
    """Write a module, a function or an exported program, as it runs on such arguments, to one file.

    Shapes and dtypes are those of the arguments; weights are what they are now. Gradients are not recorded. What Python
    decides by elements, and what changes weights or buffers, cannot be compiled ahead: that is an error.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "linear.fc")
    >>> _ = flambeau.compiler.aot_compile(flambeau.nn.ReLU(), (flambeau.ones(2),), path)
    >>> flambeau.compiler.aot_load(path)(flambeau.tensor([-1.0, 2.0]))
    tensor([0., 2.])

    Args:
        target: a module, a function or an `ExportedProgram`.
        args (tuple): example arguments.
        path (str or PathLike): the file.
        kwargs (dict, optional): example keyword arguments.

    Returns:
        Path: the file's path.
    """
    pack(path, entries_of(target, args, kwargs or {}))
    return Path(path)


def entries_of(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, bytes]:
    """What such a file holds."""
    function = target.module() if hasattr(target, "graph_signature") else target
    recording = _recorded(function, args, kwargs)
    program = _Written(recording, function)
    return {
        "program.json": json.dumps(program.document).encode(),
        "weights.safetensors": SLOTS.bytes_of_tensors(program.tensors),
        **{f"code/{name}": code for name, code in program.machine_code().items()},
    }


class _Captured(Compiled):
    """A function of which one call is wanted, written down."""

    _replays = False

    recording: Recording | None = None

    def _program(self, recording: Recording) -> Callable[..., Any] | None:
        self.recording = recording
        return None


def _recorded(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recording:
    """A call of a function, without gradients."""
    captured = _Captured(function, fullgraph=True, dynamic=False)
    modes = THREAD.modes
    grad, modes.grad = modes.grad, False
    try:
        while captured.recording is None:
            captured(*args, **kwargs)
    finally:
        modes.grad = grad
    recording = captured.recording
    written = Written()
    for item in recording.recorder.program.items:
        if not isinstance(item, Call):
            raise Unsupported(f"aot_compile: {_why_not(item)}")
        written.note(item.op, item.examples)
    if any(written.has(tensor._array) for tensor, _ in recording.state.tensors.values()):
        raise Unsupported("aot_compile: it changes a tensor that was there before")
    if recording.recorder.read is not None:
        raise Unsupported("aot_compile: it returns a number that it reads from a tensor")
    return recording


def _why_not(item: Item) -> str:
    place = getattr(item, "place", None)
    return "it runs an optimizer, or sets gradients" if place is None else f"Python looks at elements ({place})"


def machine() -> dict[str, str]:
    """What machine code depends on, by the words for it."""
    found = {"Flambeau": RELEASE, "NumPy": np.__version__, "system": sys.platform}
    if available():
        from ..._codegen.machine.engine import engine

        made = engine()
        found |= {"processor": made.processor, "target": made.triple, "features of the processor": made.features}
        found["generated code"] = made.fingerprint
    return found


class _Written:
    """The content of the file."""

    def __init__(self, recording: Recording, function: Any) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._recorder = recording.recorder
        self._inputs = self._recorder.program.inputs
        self._results: list[Value] = []
        answer = self._answer(recording.result)
        items = without_dead(self._recorder.program.items, self._results)
        self._items = [each for each in items if isinstance(each, Call)]
        given = tensors_in(recording.call)
        numbers = {id(tensor): number for number, tensor in self._inputs.items()}
        self.document = {
            "version": VERSION,
            "machine": machine(),
            "call": self._form(recording.call),
            "arguments": [numbers.get(id(each)) for each in given],
            "weights": self._weights(given, function),
            "values": self._layouts(),
            "families": sorted({_family(each.op) for each in self._items}),
            "items": [[each.op.name, self._plain(each.args), self._plain(each.results)] for each in self._items],
            "answer": answer,
        }

    def _weights(self, given: list[Tensor], function: Any) -> dict[int, str]:
        """The names of the tensors that are part of the program, by the numbers of their values."""
        named = [*getattr(function, "named_parameters", list)(), *getattr(function, "named_buffers", list)()]
        names = {id(tensor): name for name, tensor in named}
        arguments = {id(each) for each in given}
        found = {}
        for number, tensor in self._inputs.items():
            if id(tensor) not in arguments:
                found[number] = names.get(id(tensor), f"constant.{number}")
                self.tensors[found[number]] = tensor_of(tensor._array)
        return found

    def _layouts(self) -> dict[int, Any]:
        """Dtype, sizes and strides of every value."""
        found = {number: _layout(each._array) for number, each in self._inputs.items()}
        for item in self._items:
            several = type(item.results) is list
            pairs = zip(item.results, item.made, strict=True) if several else [(item.results, item.made)]
            found.update({value.number: _layout(each._array) for value, each in pairs if type(value) is Value})
        return found

    def _form(self, tree: Any) -> Any:
        """The arguments of the call: nothing in the place of tensors, which differ from call to call."""
        if isinstance(tree, Tensor):
            return {"tensor": _layout(tree._array)}
        if type(tree) in (list, tuple):
            return {type(tree).__name__: [self._form(each) for each in tree]}
        if type(tree) is dict and all(type(each) is str for each in tree):
            return {"dict": [[name, self._form(each)] for name, each in tree.items()]}
        return self._plain(tree)

    def _answer(self, tree: Any) -> Any:
        """What the call returns, with values in the place of tensors."""
        if isinstance(tree, Tensor):
            value = self._recorder.value_of(tree)
            if value is None:
                raise Unsupported("aot_compile: it returns a tensor that it neither makes nor is given")
            self._results.append(value)
            return {"value": value.number}
        if type(tree) in (list, tuple):
            return {type(tree).__name__: [self._answer(each) for each in tree]}
        if type(tree) is dict and all(type(each) is str for each in tree):
            return {"dict": [[name, self._answer(each)] for name, each in tree.items()]}
        return self._plain(tree)

    def _plain(self, value: Any) -> Any:
        """An argument in JSON's terms; what is no number, text or nothing has its kind beside it."""
        if type(value) is Value:
            return {"value": value.number}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self._plain(each) for each in value]}
        if type(value) is float:
            return {"float": value.hex()}
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is slice:
            return {"slice": [self._plain(each) for each in (value.start, value.stop, value.step)]}
        if isinstance(value, dtype):
            return {"dtype": value.name}
        if isinstance(value, memory_format):
            return {"memory_format": value.name}
        if isinstance(value, np.dtype):
            return {"numpy": value.name}
        if isinstance(value, Kind) and value.is_cpu and value.plain is value:
            return {"kind": value.dtype.name}
        if isinstance(value, np.ndarray):
            name = f"array.{len(self.tensors)}"
            self.tensors[name] = tensor_of(value)
            return {"array": name}
        raise Unsupported(f"aot_compile: {value!r}, an argument of the call or of an op, cannot be written to a file")

    def machine_code(self) -> dict[str, bytes]:
        """The machine code of the kernels that the program runs, by its digest."""
        if not available():
            return {}
        from ..._codegen.kernel import KERNELS
        from ..._codegen.machine.engine import engine
        from ..._codegen.show import kernels_of

        source = Source()
        source.items(self._items, self._results)
        runners = [part.runner for part in source.parts if isinstance(part, Segment)]
        planned = {id(each.kernel) for each in runners} | {
            id(function) for each in runners for function, *_ in each.calls
        }
        run = source.function("call", ", ".join([f"v{each}" for each in self._inputs]))
        used = kernels_of(run, *[each._array.copy(order="K") for each in self._inputs.values()])
        known = [(kernel, parameters, made) for kernel in KERNELS.values() for parameters, made in kernel.compiled()]
        used += [(kernel, parameters) for kernel, parameters, made in known if id(made) in planned]
        made = engine()
        return {
            made.digest_of(kernel.name, parameters): made.code_of(
                kernel.name, parameters, functools.partial(kernel.module, *parameters)
            )
            for kernel, parameters in used
        }


def _family(op: Op) -> str:
    """The module, inside this package, that has to be imported for an op to be there."""
    return str(getattr(getattr(op, "kernel", None), "__module__", "")).partition(".")[2]


def tensors_in(tree: Any) -> list[Tensor]:
    """The tensors among arguments, in order."""
    found: list[Tensor] = []
    SLOTS.tree_map_only(Tensor, found.append, tree)
    return found


def _layout(array: Any) -> list[Any]:
    return [array.dtype.name, list(array.shape), list(array.strides)]


def tensor_of(array: Any) -> Tensor:
    """A copy of an array, as a tensor without gaps."""
    content = np.array(array, order="C")
    return Tensor._from_parts((content, kind_of_array(content.dtype, CPU), [0, None]))
