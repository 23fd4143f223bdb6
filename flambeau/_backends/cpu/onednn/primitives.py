"""Primitives: made once for each combination of shapes, strides and data types, kept, and run on addresses.

A primitive may be run by several threads at once; its memory objects may not, because the addresses are stored in them.
So a primitive has a list of sets of memory objects, and each run takes one from it, or makes one if all are in use.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from .constants import QUERY_ARGUMENT, QUERY_IMPLEMENTATION, SCRATCHPAD, ExecutionArgument
from .library import Handle, Library, Unsupported, get
from .memory import BUFFERS, Buffer, new_buffer

CAPACITY = 1024
"""How many primitives of each kind are kept."""

reference_allowed = False
"""Whether oneDNN's own plain loops will do. They are for its tests, and slower than the other kernels of this package;
tests of this package on a machine for which oneDNN has nothing better allow them."""

_Built = TypeVar("_Built", bound=Callable[..., Any])


def cached(build: _Built) -> _Built:
    """Keep what `build` returns for its arguments; that it raised `Unsupported` is kept as well.

    The number of threads belongs to the key: it decides how much scratch memory a primitive asks for.
    """

    @functools.lru_cache(maxsize=CAPACITY)
    def stored(threads: int, *key: Any) -> Any:
        try:
            return build(*key)
        except Unsupported as reason:
            return str(reason)

    @functools.wraps(build)
    def find(*key: Any) -> Any:
        found = stored(get().threads(), *key)
        if type(found) is str:
            raise Unsupported(found)
        return found

    _CACHES.append(stored)
    return cast(_Built, find)


_CACHES: list[Any] = []


def clear() -> None:
    """Forget all primitives and free the idle buffers."""
    for each in _CACHES:
        each.cache_clear()
    BUFFERS.clear()


def described(name: str, *args: Any, reference: bool = False) -> Handle:
    """A primitive descriptor; `Unsupported` if oneDNN has none, or only its plain loops and these are not wanted."""
    library = get()
    made = library.create(
        f"{name}_primitive_desc_create",
        "primitive_desc_destroy",
        library.engine.value,
        *[each.value if isinstance(each, Handle) else each for each in args],
        library.attributes.value,
    )
    if not (reference or reference_allowed) and implementation(made).startswith("ref"):
        raise Unsupported(f"oneDNN has only reference code for this {name}")
    return made


def implementation(primitive_descriptor: Handle) -> str:
    """The name of the code that was chosen, such as "brgconv:avx512_core"."""
    name = ctypes.c_char_p()
    get().call("primitive_desc_query", primitive_descriptor.value, QUERY_IMPLEMENTATION, 0, ctypes.byref(name))
    return (name.value or b"").decode()


class Argument(NamedTuple):
    """An argument of a primitive: its number, the layout in which the caller has it (None: the primitive's own), and
    whether it is a result.
    """

    number: int
    descriptor: Handle | None
    result: bool = False


class PackedWeights:
    """Weights in the layouts that primitives want, kept beside the parameter by whoever owns it.

    Arrays do not tell when they change, so the owner says which version it has: `packed.at(version)` forgets the copies
    of any other.
    """

    def __init__(self) -> None:
        self._version: object = None
        self._copies: list[tuple[Handle, Buffer]] = []

    def at(self, version: object) -> PackedWeights:
        """This object, for that version of the weights."""
        if version != self._version:
            self._version, self._copies = version, []
        return self

    def find(self, layout: Handle) -> Buffer | None:
        """The copy in this layout, if there is one."""
        equal = get().ask
        for other, buffer in self._copies:
            if equal("memory_desc_equal", other.value, layout.value):
                return buffer
        return None

    def keep(self, layout: Handle, buffer: Buffer) -> None:
        """Keep a copy in this layout."""
        self._copies.append((layout, buffer))


class _Reorder(NamedTuple):
    """An argument that the primitive wants in another layout than the caller has it in."""

    position: int
    run: Primitive
    layout: Handle
    size: int
    result: bool


class _MemoryObjects(NamedTuple):
    """The memory objects of one run at a time, with the addresses that are stored in them."""

    handles: tuple[Handle, ...]
    addresses: list[int]
    execution: Any


class Primitive:
    """A primitive with the reorders around it, run on the addresses of its arguments in their order."""

    def __init__(self, primitive_descriptor: Handle, arguments: Sequence[Argument]) -> None:
        library = get()
        self.descriptor = primitive_descriptor
        self.library = library
        self.handle = library.create("primitive_create", "primitive_destroy", primitive_descriptor.value)
        self._numbers = [each.number for each in arguments]
        self._layouts = [self.layout(each.number) for each in arguments]
        self._idle: list[_MemoryObjects] = []
        self.reorders = [
            _reorder(library, position, given, wanted)
            for position, (given, wanted) in enumerate(zip(arguments, self._layouts, strict=True))
            if given.descriptor is not None
            and not library.ask("memory_desc_equal", given.descriptor.value, wanted.value)
        ]
        self._sizes: dict[int, int] = {}
        self.scratch = self.size(SCRATCHPAD)
        if self.scratch:
            self._numbers.append(SCRATCHPAD)
            self._layouts.append(self.layout(SCRATCHPAD))

    @property
    def implementation(self) -> str:
        """The name of the code that oneDNN chose."""
        return implementation(self.descriptor)

    @property
    def reordered(self) -> list[int]:
        """The numbers of the arguments that are brought into another layout at each run."""
        return [self._numbers[each.position] for each in self.reorders]

    def layout(self, number: int) -> Handle:
        """The layout in which the primitive wants an argument."""
        found = self.library.ask("primitive_desc_query_md", self.descriptor.value, QUERY_ARGUMENT, number)
        return self.library.create("memory_desc_clone", "memory_desc_destroy", found)

    def size(self, number: int) -> int:
        """How many bytes the primitive wants for an argument."""
        found = self._sizes.get(number)
        if found is None:
            layout = self.layout(number)  # held, because it is gone with its last reference
            found = self._sizes[number] = int(self.library.ask("memory_desc_get_size", layout.value))
        return found

    def run(self, addresses: list[int], packed: PackedWeights | None = None, packed_at: int = -1) -> None:
        """Compute. The argument at position `packed_at` are weights whose reordered copy may be kept in `packed`."""
        if not self.reorders:
            self._execute(addresses)
            return
        given, addresses = addresses, addresses.copy()
        borrowed = []
        for each in self.reorders:
            if packed is not None and each.position == packed_at:
                addresses[each.position] = self._packed(each, given, packed).address
                continue
            buffer = BUFFERS.take(each.size)
            borrowed.append(buffer)
            addresses[each.position] = buffer.address
            if not each.result:
                each.run.run([given[each.position], buffer.address])
        self._execute(addresses)
        for each in self.reorders:
            if each.result:
                each.run.run([addresses[each.position], given[each.position]])
        for buffer in borrowed:
            BUFFERS.give(buffer)

    def _packed(self, reorder: _Reorder, given: list[int], packed: PackedWeights) -> Buffer:
        buffer = packed.find(reorder.layout)
        if buffer is None:
            buffer = new_buffer(reorder.size)
            reorder.run.run([given[reorder.position], buffer.address])
            packed.keep(reorder.layout, buffer)
        return buffer

    def _execute(self, addresses: list[int]) -> None:
        library = self.library
        try:
            objects = self._idle.pop()
        except IndexError:
            objects = self.new_objects()
        scratch = None
        if self.scratch:
            scratch = BUFFERS.take(self.scratch)
            addresses = [*addresses, scratch.address]
        stored = objects.addresses
        if stored != addresses:
            for place, each in enumerate(addresses):
                if stored[place] != each:
                    library.set_data_handle(objects.handles[place].value, each)
                    stored[place] = each
        status = library.execute(self.handle.value, library.stream(), len(addresses), objects.execution)
        self._idle.append(objects)
        if scratch is not None:
            BUFFERS.give(scratch)
        if status:
            library.fail("primitive_execute", status)

    def new_objects(self) -> _MemoryObjects:
        """Memory objects for one run at a time."""
        library = self.library
        handles = tuple(
            library.create("memory_create", "memory_destroy", layout.value, library.engine.value, None)
            for layout in self._layouts
        )
        execution = (ExecutionArgument * len(handles))(
            *[ExecutionArgument(number, handle.value) for number, handle in zip(self._numbers, handles, strict=True)]
        )
        return _MemoryObjects(handles, [0] * len(handles), execution)


def _reorder(library: Library, position: int, given: Argument, wanted: Handle) -> _Reorder:
    assert given.descriptor is not None
    source, target = (wanted, given.descriptor) if given.result else (given.descriptor, wanted)
    engine = library.engine.value
    made = library.create(
        "reorder_primitive_desc_create",
        "primitive_desc_destroy",
        source.value,
        engine,
        target.value,
        engine,
        library.attributes.value,
    )
    size = int(library.ask("memory_desc_get_size", wanted.value))
    return _Reorder(
        position, Primitive(made, [Argument(1, None), Argument(17, None, True)]), wanted, size, given.result
    )
