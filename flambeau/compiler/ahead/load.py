"""Running programs that were compiled ahead of time: `save.py` writes their files."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from ..._core.device import CPU, MEMORY_FORMATS
from ..._core.dtype import dtype_named
from ..._core.kind import kind_of_array
from ..._core.modes import THREAD
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..._dispatch.op import OPS
from ..._dispatch.public.registry import load_all
from ..emit.source import Source
from ..program.items import Call, Value
from .archive import pack, unpack
from .save import VERSION, entries_of, machine, tensors_in


class AheadOfTime:
    """A program from a file. It is called as the function was that it was made from, without recording gradients."""

    def __init__(self, document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors
        self._form = document["call"]
        self._arguments: list[int | None] = document["arguments"]
        values = {_number(name): _example(each) for name, each in document["values"].items()}
        weights = {_number(number): tensors[name]._array for number, name in document["weights"].items()}
        for number, array in weights.items():
            values[number] = _laid_out(array, values[number])
        self._examples = values
        _load_ops(document)
        items = [self._call(*each) for each in document["items"]]
        source = Source()
        results: list[Value] = []
        text = self._answer(document["answer"], source, results)
        given = dict.fromkeys([each for each in self._arguments if each is not None])
        for number in weights:
            source.lines.append(f"v{number} = {source.constant(values[number]._array)}")
        source.items(items, results)
        source.lines.append(f"return {text}")
        self._run: Callable[..., Any] = source.function("call", ", ".join([f"v{each}" for each in given]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = tensors_in((args, kwargs))
        if (wrong := _differs(self._form, (args, kwargs), "the call")) is not None:
            raise RuntimeError(f"compiled ahead of time for other arguments: {wrong}")
        arrays: dict[int, Any] = {}
        for tensor, number in zip(given, self._arguments, strict=True):
            if number is not None and arrays.setdefault(number, tensor._array) is not tensor._array:
                raise RuntimeError("compiled ahead of time for arguments of which two were one tensor")
        return self._run(*[_laid_out(each, self._examples[number])._array for number, each in arrays.items()])

    def _call(self, name: str, args: Any, results: Any) -> Call:
        op = OPS[name]
        given, made = self._read(args), self._read(results)
        return Call(op, given, made, self._filled(given), self._filled(made))

    def _filled(self, tree: Any) -> Any:
        """Arguments with examples in the place of values."""
        if type(tree) is Value:
            return self._examples[tree.number]
        return type(tree)([self._filled(each) for each in tree]) if type(tree) in (list, tuple) else tree

    def _read(self, written: Any) -> Any:
        """What `save.py` has written of an argument."""
        if not isinstance(written, dict):
            return written
        ((kind, content),) = written.items()
        if kind == "value":
            return Value(_number(content))
        if kind in ("list", "tuple"):
            return {"list": list, "tuple": tuple}[kind]([self._read(each) for each in content])
        if kind == "float":
            return float.fromhex(content)
        if kind == "slice":
            return slice(*[self._read(each) for each in content])
        if kind == "dtype":
            return dtype_named(content)
        if kind == "memory_format":
            return MEMORY_FORMATS[content]
        if kind == "numpy":
            return dtype_named(content).numpy
        if kind == "kind":
            return kind_of_array(dtype_named(content).numpy, CPU)
        if kind == "array":
            return self._tensors[content]._array
        raise RuntimeError(f"not a program that aot_compile has written: it has a {kind!r}")

    def _answer(self, written: Any, source: Source, results: list[Value]) -> str:
        """Source for what the call returns."""
        if isinstance(written, dict):
            ((kind, content),) = written.items()
            if kind == "value":
                value = Value(_number(content))
                results.append(value)
                return source.tensor(value, self._examples[value.number]._kind)
            if kind == "dict":
                named = [f"{str(name)!r}: {self._answer(each, source, results)}" for name, each in content]
                return f"{{{', '.join(named)}}}"
            if kind in ("list", "tuple"):
                parts = "".join([f"{self._answer(each, source, results)}, " for each in content])
                return f"[{parts}]" if kind == "list" else f"({parts})"
        return source.constant(self._read(written))


def _load_ops(document: dict[str, Any]) -> None:
    """Import what has the ops of a program: files of this package, whatever the document says."""
    for family in document["families"]:
        if re.fullmatch(r"_ops(\.[a-z_]+)+", family) and importlib.util.find_spec(f"{_PACKAGE}.{family}"):
            importlib.import_module(f"{_PACKAGE}.{family}")
    if any(name not in OPS for name, *_ in document["items"]):
        load_all()
    for name, *_ in document["items"]:
        if name not in OPS:
            raise RuntimeError(f"the program has an op {str(name)[:60]!r}, which there is not")


_PACKAGE = __name__.partition(".")[0]


def _number(value: Any) -> int:
    return int(value)


def _example(layout: list[Any]) -> Tensor:
    """A tensor of zeros with this layout."""
    name, shape, strides = layout
    kind = dtype_named(name).numpy
    size = (
        sum([(count - 1) * step for count, step in zip(shape, strides, strict=True)]) + kind.itemsize
        if 0 not in shape
        else 0
    )
    memory = np.zeros(max(size, kind.itemsize), np.uint8)
    return _tensor(np.ndarray(tuple(shape), kind, memory, 0, tuple(strides)))


def _tensor(array: Any) -> Tensor:
    return Tensor._from_parts((array, kind_of_array(array.dtype, CPU), [0, None]))


def _laid_out(array: Any, like: Tensor) -> Tensor:
    """An array in the arrangement for which the program was made."""
    model = like._array
    if array.strides == model.strides or not array.size:
        return _tensor(array)
    copy = np.empty_like(model)
    if copy.strides != model.strides:
        copy = _example([like.dtype.name, list(model.shape), list(model.strides)])._array
    copy[...] = array
    return _tensor(copy)


def _differs(form: Any, given: Any, where: str) -> str | None:
    """What of a call is not as it was when the program was made."""
    if isinstance(form, dict):
        ((kind, content),) = form.items()
        if kind == "tensor":
            name, shape, _ = content
            if not isinstance(given, Tensor) or not given._kind.is_cpu or given._kind.plain is not given._kind:
                return f"{where} is to be a tensor of {name}{shape} on the CPU"
            found = [given._array.dtype.name, list(given._array.shape)]
            return None if found == [name, shape] else f"{where} is {found[0]}{found[1]}, not {name}{shape}"
        if kind in ("list", "tuple"):
            if type(given).__name__ != kind or len(given) != len(content):
                return f"{where} is to be a {kind} of {len(content)}"
            found_in = [
                _differs(each, other, f"{where}[{n}]")
                for n, (each, other) in enumerate(zip(content, given, strict=True))
            ]
            return next((each for each in found_in if each is not None), None)
        if kind == "dict":
            if type(given) is not dict or list(given) != [name for name, _ in content]:
                return f"{where} is to have {', '.join([name for name, _ in content]) or 'nothing'} by name"
            return next(
                (text for name, each in content if (text := _differs(each, given[name], f"{where}.{name}"))), None
            )
        form = float.fromhex(content) if kind == "float" else form
    return None if type(form) is type(given) and form == given else f"{where} is {given!r}, not {form!r}"


def aot_load(path: str | os.PathLike[str]) -> AheadOfTime:
    """A program that `aot_compile` has written, ready to be called. Nothing is captured or compiled.

    A file has machine code, which is run: load those alone that come from where you would take a program from. What has
    been damaged on its way is refused, and so is what was compiled for another processor or another version.

    Args:
        path (str or PathLike): the file.

    Returns:
        AheadOfTime: the program.

    Example:
        >>> import tempfile
        >>> path = torch.compiler.aot_compile(torch.nn.ReLU(), (torch.ones(2),), tempfile.mkdtemp() + "/relu.flm")
        >>> torch.compiler.aot_load(path)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return _program_of(unpack(path, os.fspath(path), "aot_compile"), os.fspath(path))


class CompiledAhead:
    """What `compiled.aot_compile((args, kwargs))` gives: it can be called, and written to a file."""

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fn = function
        self._entries = entries_of(function, args, kwargs)
        self._run = _program_of(self._entries, "what was compiled")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def save_compiled_function(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, for `torch.compiler.load_compiled_function`."""
        pack(path, self._entries)


def load_compiled_function(
    file: IO[bytes], *, f_globals: dict[str, object] | None = None, external_data: dict[str, Any] | None = None
) -> AheadOfTime:
    """The function of an open file that `save_compiled_function` has written.

    Programs name no globals and have all of their data with them: `f_globals` and `external_data` are not looked at.
    """
    return _program_of(unpack(file, "the file", "save_compiled_function"), "the file")


def _program_of(entries: dict[str, bytes], shown: str) -> AheadOfTime:
    document = json.loads(entries["program.json"])
    _check_machine(document, shown)
    code = {name.removeprefix("code/"): content for name, content in entries.items() if name.startswith("code/")}
    if code:
        from ..._codegen.machine.engine import engine

        engine().handed_over.update(code)
    modes = THREAD.modes
    grad, modes.grad = modes.grad, False
    try:
        return AheadOfTime(document, SLOTS.tensors_of_bytes(entries["weights.safetensors"]))
    finally:
        modes.grad = grad


def _check_machine(document: dict[str, Any], path: str) -> None:
    if document["version"] != VERSION:
        raise RuntimeError(
            f"{path} is of version {document['version']} of these files, not {VERSION}: compile it again"
        )
    here = machine()
    for what, was in document["machine"].items():
        if here.get(what) != was:
            raise RuntimeError(
                f"{path} was compiled for another machine or version: {what} was {was[:200]!r} and is here "
                f"{str(here.get(what))[:200]!r}. Compile it here, with flambeau.compiler.aot_compile."
            )
