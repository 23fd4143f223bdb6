"""A stand-in for the library: objects are numbers, layouts can be looked at, and every call is noted."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from flambeau._backends.cpu.onednn.constants import QUERY_ARGUMENT, SCRATCHPAD
from flambeau._backends.cpu.onednn.library import Handle, Unsupported


class Layout(NamedTuple):
    """A memory descriptor: strides None leave the choice to the primitive."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    kind: int


class StandIn:
    """What `primitives.py`, `memory.py` and `matmul.py` use of a `Library`.

    A primitive wants each argument in the layout that `wanted` gives for its number. `refused` names the functions that
    fail.
    """

    multiplies_bytes_exactly = True

    def __init__(self) -> None:
        self._numbers = itertools.count(1_000_000)  # unlike any number of the interface
        self.engine = self.new("engine")
        self.attributes = self.new("attributes")
        self.layouts: dict[int, Layout] = {}
        self.wanted: dict[int, Layout] = {}
        self.scratch = 0
        self.refused: set[str] = set()
        self.implementation = b"jit:stand_in"
        self.thread_count = 1
        self.asked: list[tuple[Any, ...]] = []
        self.handles_set: list[tuple[int, int]] = []
        self.executed: list[list[tuple[int, int]]] = []
        self.destroyed: list[int] = []
        self._memory: dict[int, int] = {}

    def new(self, name: str) -> Handle:
        return Handle(next(self._numbers), lambda value: self.destroyed.append(value))

    def threads(self) -> int:
        return self.thread_count

    def stream(self) -> int:
        return -1

    def create(self, name: str, destroy: str, *args: Any) -> Handle:
        self.asked.append((name, *args))
        if name in self.refused:
            raise Unsupported(f"{name} is refused")
        made = self.new(name)
        if name.startswith("memory_desc_create"):
            rank, dims, kind, layout = args
            strides = tuple(layout[:rank]) if name.endswith("strides") else None
            self.layouts[made.value] = Layout(tuple(dims[:rank]), strides, kind)
        elif name == "memory_desc_clone":
            self.layouts[made.value] = self.layouts[args[0]]
        return made

    def call(self, name: str, *args: Any) -> None:
        assert name == "primitive_desc_query"
        args[-1]._obj.value = self.implementation

    def ask(self, name: str, *args: Any) -> Any:
        if name == "memory_desc_equal":
            return self.layouts[args[0]] == self.layouts[args[1]]
        if name == "memory_desc_get_size":
            return self.layouts[args[0]].kind if self.layouts[args[0]].shape == ("bytes",) else 64
        assert name == "primitive_desc_query_md"
        _, query, number = args
        assert query == QUERY_ARGUMENT
        if number == SCRATCHPAD:
            layout = Layout(("bytes",), None, self.scratch)  # type: ignore[arg-type]
        else:
            layout = self.wanted.get(number, Layout((number,), (1,), 3))
        made = self.new(name)
        self.layouts[made.value] = layout
        self.kept = [*getattr(self, "kept", []), made]  # the library itself owns what it answers
        return made.value

    def set_data_handle(self, memory: int, address: int) -> int:
        self.handles_set.append((memory, address))
        self._memory[memory] = address
        return 0

    def execute(self, primitive: int, stream: int, count: int, arguments: Any) -> int:
        self.executed.append([(each.argument, self._memory[each.memory]) for each in arguments[:count]])
        return 0

    def fail(self, name: str, status: int) -> None:
        raise AssertionError(name)
