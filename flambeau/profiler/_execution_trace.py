"""`ExecutionTraceObserver`: the operators of a program as a graph in JSON, in the schema of execution traces (Chakra).

A node is an operator or a range: what it was given and gave (values, shapes, types, strides), and inside of what it
ran. A tensor is a list of numbers: its own, that of its memory, offset, elements, bytes of an element, device.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from datetime import datetime, timezone
from time import perf_counter_ns
from typing import Any

from .._core.device import device as Device
from .._core.dtype import dtype as DType
from .._core.storage import owner_of
from .._core.tensor import Tensor
from .._dispatch.op import Op
from .._dispatch.public.overloads import operator_call, profiled_name
from ..jit._language.numbers_of import number_of_dtype
from ._recorder import Recorder

_SCHEMA = "1.1.1-chakra.0.0.4"
_NOTHING: dict[str, list[Any]] = {"values": [], "shapes": [], "types": [], "strides": []}
_ELEMENTS = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
    "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
_PLAIN = {bool: "Bool", int: "Int", float: "Double", complex: "ComplexDouble", str: "String", type(None): "None"}
_USER_SCOPE, _FUNCTION_SCOPE = 7, 0


class _Numbers:
    """Numbers of arrays, each of which keeps its own as long as it lives."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Any]] = {}
        self._next = 0

    def of(self, array: Any) -> int:
        key = id(array)
        found = self._known.get(key)
        if found is None:
            self._next += 1
            found = self._known[key] = self._next, weakref.ref(array, lambda _: self._known.pop(key, None))
        return found[0]


class _TraceRecorder(Recorder):
    """Notes what each operator was given and gave."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = _Numbers()

    def ran(self, op: Op, args: Sequence[Any], result: Any, start: int, end: int) -> None:
        _, given, named = operator_call(op, args)
        results = result if isinstance(result, (list, tuple)) else [result]
        inputs, outputs = self._described([*given, *named.values()]), self._described(results)
        self._note((op, start, end, inputs, outputs))

    def _described(self, values: Sequence[Any]) -> dict[str, list[Any]]:
        parts = [self._part(each) for each in values]
        return {key: [each[place] for each in parts] for place, key in enumerate(_NOTHING)}

    def _part(self, value: Any) -> tuple[Any, Any, str, Any]:
        """Value, shape, type and strides of an argument."""
        if isinstance(value, Tensor):
            array, kind = value._array, value._kind
            numbers = self._numbers.of(array), self._numbers.of(owner_of(array)), int(value.storage_offset())
            text = [*numbers, int(value.numel()), kind.dtype.itemsize, str(value.device)]
            return (
                text,
                list(value.shape),
                f"Tensor({_ELEMENTS.get(kind.dtype.name, kind.dtype.name)})",
                list(value.stride()),
            )
        if isinstance(value, (list, tuple)):
            parts = [self._part(each) for each in value]
            kinds = ",".join(each[2] for each in parts)
            return (
                [each[0] for each in parts],
                [each[1] for each in parts],
                f"GenericList[{kinds}]",
                [each[3] for each in parts],
            )
        if isinstance(value, DType):
            return number_of_dtype(value), [], "Int", []
        if isinstance(value, Device):
            return str(value), [], "Device", []
        shown: Any = "<None>" if value is None else value if type(value) in _PLAIN else "<Other>"
        return shown, [], _PLAIN.get(type(value), "Other"), []


class ExecutionTraceObserver:
    """Writes what runs between `start` and `stop` to the file that was registered.

    >>> observer = flambeau.profiler.ExecutionTraceObserver().register_callback("/dev/null")
    >>> observer.start()
    >>> _ = flambeau.ones(2) + 1
    >>> observer.stop()
    >>> observer.unregister_callback()
    """

    def __init__(self) -> None:
        self.output_file_path: str | None = None
        self._recorder: _TraceRecorder | None = None
        self._began = 0

    @property
    def is_registered(self) -> bool:
        """Whether there is a file to write to."""
        return self.output_file_path is not None

    def is_running(self) -> bool:
        """Whether it looks on."""
        return self._recorder is not None

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a file of its own, if the environment asks for one."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        with tempfile.NamedTemporaryFile("w+t", suffix=".et.json", delete=False) as file:
            name = file.name
        return ExecutionTraceObserver().register_callback(name)

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Say which file the trace goes to."""
        if not self.is_registered:
            self.output_file_path = os.fspath(output_file_path)
        return self

    def get_output_file_path(self) -> str | None:
        """The file, if one is registered."""
        return self.output_file_path

    def unregister_callback(self) -> None:
        """Stop, and forget the file, which stays."""
        self.stop()
        self.output_file_path = None

    cleanup = unregister_callback

    def start(self) -> None:
        """Begin to look on; without a file this does nothing."""
        if self.is_registered and not self.is_running():
            self._began = perf_counter_ns()
            self._recorder = _TraceRecorder()
            self._recorder.__enter__()

    def stop(self) -> None:
        """End, and write the file."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.__exit__(None, None, None)
        assert self.output_file_path is not None
        document = {
            "schema": _SCHEMA, "pid": os.getpid(),
            "time": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"), "start_ts": self._began // 1000,
            "nodes": _nodes(recorder), "finish_ts": perf_counter_ns() // 1000,
        }  # fmt: skip
        with open(self.output_file_path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


def _nodes(recorder: _TraceRecorder) -> list[dict[str, Any]]:
    """The process, its thread, and in the order of their start the ranges and operators, each below what it ran in."""
    process = _node(1, "[pytorch|profiler|execution_trace|process]", 0, _USER_SCOPE)
    nodes = [process, _node(2, "[pytorch|profiler|execution_trace|thread]", 1, _USER_SCOPE)]
    running: list[tuple[int, int]] = []
    for what, _, end, *described in sorted(recorder.notes, key=lambda note: (note[1], -note[2])):
        while running and running[-1][1] < end:
            running.pop()
        number, parent = len(nodes) + 1, running[-1][0] if running else 2
        if isinstance(what, str):
            nodes.append(_node(number, what, parent, _USER_SCOPE))
        else:
            nodes.append(_node(number, profiled_name(what), parent, _FUNCTION_SCOPE, *described))
        running.append((number, end))
    return nodes


def _node(number: int, name: str, parent: int, scope: int, given: Any = None, made: Any = None) -> dict[str, Any]:
    attributes: list[tuple[str, str, Any]] = [
        ("rf_id", "uint64", number), ("fw_parent", "uint64", 0), ("seq_id", "int64", -1), ("scope", "uint64", scope),
        ("tid", "uint64", threading.get_native_id()), ("fw_tid", "uint64", 0), ("op_schema", "string", ""),
        ("kernel_backend", "string", ""), ("kernel_file", "string", ""), ("tensor_range", "string", ""),
    ]  # fmt: skip
    return {
        "id": number, "name": name, "ctrl_deps": parent, "inputs": given or _NOTHING, "outputs": made or _NOTHING,
        "attrs": [{"name": title, "type": kind, "value": value} for title, kind, value in attributes],
    }  # fmt: skip
