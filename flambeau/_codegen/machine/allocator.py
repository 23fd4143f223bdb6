"""A caching allocator for large arrays, itself generated: NumPy calls it in place of `malloc` and `free`.

The operating system gives memory in pages that it clears when they are first touched. For ten million numbers that
takes several times as long as to add them. So blocks of freed arrays are kept, and given to the next array that they
fit: sizes are rounded up to eight classes for each power of two, and the next larger class is looked at as well.

Arrays below `THRESHOLD` never come here: the handler that NumPy used before serves them, which keeps the smallest ones
in a cache of its own. What is freed beyond a limit goes back to the operating system, together with all that lies idle.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..build import Builder, Value
from ..ir import ir
from ..types import BOOL, I8, I32, I64, POINTER, VOID
from .engine import Engine
from .system import system

THRESHOLD = 1 << 17
"""Arrays of at least so many bytes come from the pool."""

NUMBERS = (
    "allocated",
    "allocated_peak",
    "reserved",
    "reserved_peak",
    "requested",
    "requested_peak",
    "cache_limit",
    "total_limit",
    "allocations",
    "frees",
    "reused",
    "mapped",
    "unmapped",
    "retries",
    "failures",
    "idle_blocks",
    "live",
)
"""What the pool knows of itself, in this order: bytes, counts of events, of blocks, and where the live ones begin."""

_CLASSES_PER_DOUBLING = 8
_SMALLEST = 17
_CLASSES = (48 - _SMALLEST) * _CLASSES_PER_DOUBLING
_HUGE_PAGE = 1 << 21
_HUGE_FROM = 1 << 22
"""Blocks of at least so many bytes begin on a huge page, and ask for them: a first touch is then 20 times cheaper."""

_STAGGER, _POSITIONS = 17 << 10, 8
"""Such blocks begin at one of several distances from the huge page: arrays that are read together at the same distance
from multiples of a large power of two compete for the same parts of the memory (15 % of the time of an addition)."""

_HEADER = 64
_NEXT, _PREVIOUS, _SIZE, _MAPPING, _MAPPING_SIZE, _CLASS, _REQUESTED = range(0, 56, 8)
"""Before the memory that an array gets stands the header of its block."""

FUNCTIONS = tuple(
    f"flambeau_pool_{name}" for name in ("malloc", "calloc", "realloc", "free", "empty", "reset_lock", "numbers")
)


class _Pool:
    """The pool's variables, as seen from one function."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.system = system(b)
        self._numbers = self._global("numbers", len(NUMBERS) * 8)
        self._heads = self._global("idle", _CLASSES * 8)
        self.lock = self._global("lock", 128)

    def _global(self, name: str, size: int) -> Value:
        found = self.b.module.globals.get(name)
        if found is None:
            type_ = ir.ArrayType(I8, size)
            found = ir.GlobalVariable(self.b.module, type_, name)
            found.initializer = ir.Constant(type_, None)
            found.align = 64
            found.linkage = "internal"
            found.type = POINTER  # llvmlite would insist on the array's type
        return Value(self.b, found)

    @property
    def numbers(self) -> Value:
        """The address of what the pool knows of itself."""
        return self._numbers

    def get(self, name: str) -> Value:
        return self.b.load_raw(self._numbers + NUMBERS.index(name) * 8, I64)

    def set(self, name: str, value: Value) -> None:
        self.b.store_raw(value, self._numbers + NUMBERS.index(name) * 8)

    def add(self, name: str, amount: Value | int) -> None:
        """Change a number, and its highest value so far where that is kept."""
        changed = self.get(name) + amount
        self.set(name, changed)
        if f"{name}_peak" in NUMBERS:
            self.set(f"{name}_peak", self.b.larger(self.get(f"{name}_peak"), changed))

    def head(self, number: Value) -> Value:
        """Where the first idle block of a class is noted."""
        return self.b.offset(self._heads, number, I64)

    def field(self, block: Value, offset: int) -> Value:
        return self.b.load_raw(block + (offset - _HEADER), I64)

    def set_field(self, block: Value, offset: int, value: Value | int) -> None:
        self.b.store_raw(self.b.integer(value), block + (offset - _HEADER))

    def address(self, number: Value) -> Value:
        return Value(self.b, self.b.ir.inttoptr(number.ir, POINTER))

    def number(self, address: Value) -> Value:
        return Value(self.b, self.b.ir.ptrtoint(address.ir, I64))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One thread at a time runs the body, which must not return."""
        self.system.take(self.lock)
        yield
        self.system.release(self.lock)

    def link(self, block: Value, size: Value) -> None:
        """Note that a block is in use for an array of `size` bytes."""
        first = self.get("live")
        self.set_field(block, _NEXT, first)
        self.set_field(block, _PREVIOUS, 0)
        with self.b.when(first != 0):
            self.set_field(self.address(first), _PREVIOUS, self.number(block))
        self.set("live", self.number(block))
        self.set_field(block, _REQUESTED, size)
        self.add("requested", size)
        self.add("allocated", self.field(block, _SIZE))

    def unlink(self, block: Value) -> None:
        """Note that a block is in use no longer."""
        following, previous = self.field(block, _NEXT), self.field(block, _PREVIOUS)
        with self.b.when(following != 0):
            self.set_field(self.address(following), _PREVIOUS, previous)
        with self.b.either(previous != 0) as (inside, first):
            with inside:
                self.set_field(self.address(previous), _NEXT, following)
            with first:
                self.set("live", following)
        self.add("requested", -self.field(block, _REQUESTED))
        self.add("allocated", -self.field(block, _SIZE))


def _call_previous(b: Builder, context: Value, position: int, returns: ir.Type, arguments: Sequence[Value]) -> Value:
    """Call a function of the handler that was there before: `context` points to its table."""
    function = b.load_raw(context + 8 * position, I64)
    signature = ir.FunctionType(returns, [POINTER, *[each.type for each in arguments]])
    # llvmlite finds the signature of an indirect call in the pointer's type.
    pointer = b.ir.inttoptr(function.ir, signature.as_pointer())
    own = b.load_raw(context, POINTER)
    return Value(b, b.ir.call(pointer, [own.ir, *[each.ir for each in arguments]]))


_MALLOC, _CALLOC, _REALLOC, _FREE = 1, 2, 3, 4
"""The functions in a handler's table, after its context."""


def _null(b: Builder) -> Value:
    return b.constant(POINTER, 0)


def _write_release(module: ir.Module) -> None:
    """`pool_release()`: everything that lies idle goes back to the operating system. The caller holds the lock."""
    b = Builder(module, "pool_release", VOID, [])
    pool = _Pool(b)
    with b.loop(0, _CLASSES) as number:
        place = pool.head(number)
        with b.repeat_while() as go_on_if:
            first = b.load_raw(place, I64)
            go_on_if(first != 0)
            block = pool.address(first)
            b.store_raw(pool.field(block, _NEXT), place)
            b.call("pool_unmap", VOID, [block])
            pool.add("idle_blocks", -1)
    b.give_back()


def _write_unmap(module: ir.Module) -> None:
    """`pool_unmap(block)`: a block that is in no list goes back to the operating system."""
    b = Builder(module, "pool_unmap", VOID, [POINTER])
    pool = _Pool(b)
    (block,) = b.arguments
    pool.add("reserved", -pool.field(block, _SIZE))
    pool.add("unmapped", 1)
    mapping, size = pool.address(pool.field(block, _MAPPING)), pool.field(block, _MAPPING_SIZE)
    pool.system.unmap(mapping, size)
    b.give_back()


def _write_map(module: ir.Module) -> None:
    """`pool_map(size, class)`: a new block of `size` bytes, its header included; null if there is no memory."""
    b = Builder(module, "pool_map", POINTER, [I64, I64])
    pool = _Pool(b)
    size, number = b.arguments
    with b.when(pool.get("reserved") + size > pool.get("total_limit")):
        pool.add("retries", 1)
        b.call("pool_release", VOID, [])
        with b.when(pool.get("reserved") + size > pool.get("total_limit")):
            b.give_back(_null(b))
    is_huge = size >= _HUGE_FROM
    extra = b.select(is_huge, b.integer(_HUGE_PAGE + _STAGGER * _POSITIONS), b.integer(0))
    whole = size + extra
    mapping = b.variable(I64, -1)
    with b.loop(0, 2) as attempt, b.when(mapping.value == -1):
        with b.when(attempt == 1):
            pool.add("retries", 1)
            b.call("pool_release", VOID, [])
        mapping.value = pool.system.map(whole, is_huge)
    with b.when(mapping.value == -1):
        b.give_back(_null(b))
    start = b.select(is_huge, (mapping.value + (_HUGE_PAGE - 1)) & -_HUGE_PAGE, mapping.value)
    with b.when(is_huge):
        pool.system.ask_for_huge_pages(pool.address(start), size + _STAGGER * _POSITIONS)
    distance = b.select(is_huge, pool.get("mapped") % _POSITIONS * _STAGGER, b.integer(0))
    block = pool.address(start + distance + _HEADER)
    pool.set_field(block, _SIZE, size)
    pool.set_field(block, _MAPPING, mapping.value)
    pool.set_field(block, _MAPPING_SIZE, whole)
    pool.set_field(block, _CLASS, number)
    pool.add("reserved", size)
    pool.add("mapped", 1)
    b.give_back(block)


def _write_take(module: ir.Module) -> None:
    """`pool_take(size, fresh)`: memory for `size` bytes; `*fresh` says whether it is new, and so zero."""
    b = Builder(module, "pool_take", POINTER, [I64, POINTER])
    pool = _Pool(b)
    size, fresh = b.arguments
    with b.when((size < 0) | (size > 1 << 46)):
        b.give_back(_null(b))
    needed = size + _HEADER
    doubling = 63 - b.intrinsic("llvm.ctlz", I64, [needed, Value(b, ir.Constant(BOOL, 0))], [I64])
    shift = doubling - (_CLASSES_PER_DOUBLING.bit_length() - 1)
    steps = (needed + ((b.integer(1) << shift) - 1)) >> shift
    number = (doubling - _SMALLEST) * _CLASSES_PER_DOUBLING + steps - _CLASSES_PER_DOUBLING
    found = b.variable(POINTER, 0)
    with pool.locked():
        # Of the class itself, else of the next one.
        with b.loop(number, b.smaller(number + 2, _CLASSES)) as candidate, b.when(found.value == _null(b)):
            place = pool.head(candidate)
            first = b.load_raw(place, I64)
            with b.when(first != 0):
                found.value = pool.address(first)
                b.store_raw(pool.field(found.value, _NEXT), place)
                pool.add("idle_blocks", -1)
                pool.add("reused", 1)
                b.store_raw(0, fresh, I64)
        with b.when(found.value == _null(b)):
            b.store_raw(1, fresh, I64)
            found.value = b.call("pool_map", POINTER, [steps << shift, number])
        with b.either(found.value != _null(b)) as (done, failed):
            with done:
                pool.add("allocations", 1)
                pool.link(found.value, size)
            with failed:
                pool.add("failures", 1)
    b.give_back(found.value)


def _write_give(module: ir.Module) -> None:
    """`pool_give(block)`: a block is in use no longer. If too much lies idle, all of that goes first."""
    b = Builder(module, "pool_give", VOID, [POINTER])
    pool = _Pool(b)
    (block,) = b.arguments
    with pool.locked():
        pool.unlink(block)
        pool.add("frees", 1)
        size = pool.field(block, _SIZE)
        with b.when(pool.get("reserved") - pool.get("allocated") > pool.get("cache_limit")):
            b.call("pool_release", VOID, [])
        with b.either(size > pool.get("cache_limit")) as (beyond, kept):
            with beyond:
                b.call("pool_unmap", VOID, [block])
            with kept:
                place = pool.head(pool.field(block, _CLASS))
                pool.set_field(block, _NEXT, b.load_raw(place, I64))
                b.store_raw(pool.number(block), place)
                pool.add("idle_blocks", 1)
    b.give_back()


def _write_handler(module: ir.Module) -> None:
    """The four functions that NumPy calls."""
    b = Builder(module, "flambeau_pool_malloc", POINTER, [POINTER, I64])
    context, size = b.arguments
    with b.when(size < THRESHOLD, likely=True):
        b.give_back(_call_previous(b, context, _MALLOC, POINTER, [size]))
    b.give_back(b.call("pool_take", POINTER, [size, b.stack(I64, 1)]))

    b = Builder(module, "flambeau_pool_calloc", POINTER, [POINTER, I64, I64])
    context, count, each = b.arguments
    size = count * each
    with b.when(size < THRESHOLD, likely=True):
        b.give_back(_call_previous(b, context, _CALLOC, POINTER, [count, each]))
    fresh = b.stack(I64, 1)
    block = b.call("pool_take", POINTER, [size, fresh])
    with b.when(block != _null(b)), b.when(b.load_raw(fresh, I64) == 0):
        b.call("memset", POINTER, [block, Value(b, ir.Constant(I32, 0)), size])
    b.give_back(block)

    b = Builder(module, "flambeau_pool_free", VOID, [POINTER, POINTER, I64])
    context, pointer, size = b.arguments
    with b.when(size < THRESHOLD, likely=True):
        _call_previous(b, context, _FREE, VOID, [pointer, size])
        b.give_back()
    with b.when(pointer != _null(b)):
        b.call("pool_give", VOID, [pointer])
    b.give_back()


def _write_realloc(module: ir.Module) -> None:
    """NumPy does not say how large the memory was: the list of live blocks knows whether it is one of the pool's."""
    b = Builder(module, "flambeau_pool_realloc", POINTER, [POINTER, POINTER, I64])
    pool = _Pool(b)
    context, pointer, size = b.arguments
    with b.when(pointer == _null(b)):
        b.give_back(b.call("flambeau_pool_malloc", POINTER, [context, size]))
    searched = b.variable(I64, 0)
    old = b.variable(I64, -1)
    with pool.locked():
        searched.value = pool.get("live")
        with b.repeat_while() as go_on_if:
            go_on_if((searched.value != 0) & (searched.value != pool.number(pointer)))
            searched.value = pool.field(pool.address(searched.value), _NEXT)
        with b.when(searched.value != 0):
            old.value = pool.field(pointer, _REQUESTED)
    with b.when(old.value < 0):
        with b.when(size < THRESHOLD):
            b.give_back(_call_previous(b, context, _REALLOC, POINTER, [pointer, size]))
        # The handler before knows how much there is to copy. If there is no memory, the array keeps what it has.
        moved = b.call("pool_take", POINTER, [size, b.stack(I64, 1)])
        with b.when(moved == _null(b)):
            b.give_back(moved)
        grown = _call_previous(b, context, _REALLOC, POINTER, [pointer, size])
        with b.when(grown == _null(b)):
            b.call("pool_give", VOID, [moved])
            b.give_back(grown)
        b.call("memcpy", POINTER, [moved, grown, size])
        _call_previous(b, context, _FREE, VOID, [grown, size])
        b.give_back(moved)
    new = b.call("flambeau_pool_malloc", POINTER, [context, size])
    with b.when(new != _null(b)):
        b.call("memcpy", POINTER, [new, pointer, b.smaller(old.value, size)])
        b.call("pool_give", VOID, [pointer])
    b.give_back(new)


def _write_controls(module: ir.Module) -> None:
    b = Builder(module, "flambeau_pool_empty", VOID, [])
    with _Pool(b).locked():
        b.call("pool_release", VOID, [])
    b.give_back()
    b = Builder(module, "flambeau_pool_reset_lock", VOID, [])
    pool = _Pool(b)
    pool.system.new_lock(pool.lock)
    b.give_back()
    b = Builder(module, "flambeau_pool_numbers", POINTER, [])
    b.give_back(_Pool(b).numbers)


def write(module: ir.Module) -> ir.Module:
    """Write the allocator into an empty module."""
    _write_unmap(module)
    _write_release(module)
    _write_map(module)
    _write_take(module)
    _write_give(module)
    _write_handler(module)
    _write_realloc(module)
    _write_controls(module)
    return module


class Allocator:
    """The allocator's functions and numbers, as Python reaches them."""

    def __init__(self, engine: Engine) -> None:
        self.addresses = engine.load("allocator", (), lambda: write(engine.new_module("allocator")), FUNCTIONS)
        # Functions that keep Python's lock. NumPy holds it too when it makes and frees arrays, so that a fork finds the
        # pool in order. And nothing here waits for Python's lock with the pool's in its hands.
        self._reset_lock, self._empty = (
            ctypes.PYFUNCTYPE(None)(self.addresses[f"flambeau_pool_{name}"]) for name in ("reset_lock", "empty")
        )
        place = ctypes.PYFUNCTYPE(ctypes.c_void_p)(self.addresses["flambeau_pool_numbers"])()
        self._numbers = (ctypes.c_int64 * len(NUMBERS)).from_address(place)
        self._reset_lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset_lock)

    def __getitem__(self, name: str) -> int:
        return self._numbers[NUMBERS.index(name)]

    def set(self, **numbers: int) -> None:
        """Set some of the numbers."""
        for name, value in numbers.items():
            self._numbers[NUMBERS.index(name)] = value

    def reset_peaks(self) -> None:
        """Forget the highest values so far."""
        self.set(**{name: self[name.removesuffix("_peak")] for name in NUMBERS if name.endswith("_peak")})

    def empty(self) -> None:
        """Give everything that lies idle back to the operating system."""
        self._empty()
