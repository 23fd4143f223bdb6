"""The thread pool of generated code, itself generated: `flambeau_parallel(body, context, count, grain)`.

Where a library with OpenMP's threads is in use, loops run on these, since two pools would take each other's processors.
The pool here is for machines without such a library, and for forked children, in which OpenMP's threads do not work:

- The caller of a parallel loop works too, and takes shares until none is left. Workers join if they come in time. A
  worker that the operating system does not run at that moment is not waited for; only one in the middle of a share is.
- Each thread begins with shares of its own, which are neighbours, and takes those of others when it has none left. So
  what a loop has written is read in the next one by the same processor, from its own cache.
- Workers that find nothing to do yield the processor for some microseconds, then sleep.
- A loop inside a loop, or beside one of another thread, runs on the thread that reached it.
- After a fork the child has no workers, and makes new ones when it needs them.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from ..._core.process.threads import when_changed, when_offered
from ..build import Builder, Value
from ..ir import ir
from ..types import I8, I32, I64, POINTER, VOID
from .system import system

if TYPE_CHECKING:
    from .engine import Engine

SHARES_PER_THREAD = 4
"""Work is cut finer than there are threads: one that is late leaves its part to the others."""
YIELDS = 40
"""How often a thread that waits yields the processor before it sleeps."""
MOST_THREADS = 256
"""So many threads have shares of their own; more do not take part in a loop."""
_LINE = 64
"""Bytes of a cache line: what threads write at the same time is so far apart."""
_ONE_SHARE_EACH = 0
"""What stands for the number of threads in loops that are too short for threads to take shares of others."""
_SHARES_BITS = 16
"""The bits of a thread's place in its shares; the loop's number is above them."""

_FUNCTIONS = (
    "flambeau_parallel", "flambeau_set_threads", "flambeau_set_team", "flambeau_after_fork", "flambeau_pool_size",
)  # fmt: skip


def _global(b: Builder, name: str, bytes_: int = 8) -> Value:
    found = b.module.globals.get(name)
    if found is None:
        type_ = I64 if bytes_ == 8 else ir.ArrayType(I8, bytes_)
        found = ir.GlobalVariable(b.module, type_, name)
        found.initializer = ir.Constant(type_, 0 if bytes_ == 8 else None)
        found.align = 64  # on a cache line of its own
        found.linkage = "internal"
        if bytes_ > 8:
            found.type = POINTER  # llvmlite insists on knowing what an atomic variable is, and else on not knowing
    return Value(b, found)


class _Pool:
    """The pool's variables, as seen from one function."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.system = system(b)
        self.lock, self.wake, self.done = (_global(b, name, 128) for name in ("lock", "wake", "done"))
        names = (
            "threads",
            "workers",
            "taken",
            "job",
            "is_open",
            "active",
            "numbered",
            "loop",
            "body",
            "context",
            "count",
            "share",
            "taking_part",
            "team",
            "team_number",
            "team_size",
        )
        for name in names:
            setattr(self, name, _global(b, name))
        self.places = _global(b, "places", MOST_THREADS * _LINE)

    threads: Value
    workers: Value
    taken: Value
    job: Value
    is_open: Value
    active: Value
    numbered: Value
    loop: Value
    body: Value
    context: Value
    count: Value
    share: Value
    taking_part: Value
    team: Value
    team_number: Value
    team_size: Value

    def get(self, place: Value) -> Value:
        return Value(self.b, self.b.ir.load_atomic(place.ir, "seq_cst", 8, typ=I64))

    def set(self, place: Value, value: Value | int) -> None:
        self.b.ir.store_atomic(self.b.integer(value).ir, place.ir, "seq_cst", 8)

    def add(self, place: Value, amount: Value | int) -> Value:
        """Add, and return what was there before."""
        return Value(self.b, self.b.ir.atomic_rmw("add", place.ir, self.b.integer(amount).ir, "seq_cst"))

    def locked(self) -> None:
        self.system.take(self.lock)

    def unlocked(self) -> None:
        self.system.release(self.lock)

    def take_shares(self, me: Value) -> None:
        """Run shares of the open loop until there are none: those of thread `me` first, then those of the next."""
        b = self.b
        count, share, threads = self.get(self.count), self.get(self.share), self.get(self.taking_part)
        body = Value(b, b.ir.inttoptr(self.get(self.body).ir, POINTER))
        context = Value(b, b.ir.inttoptr(self.get(self.context).ir, POINTER))
        shares = (count + share - 1) // share
        each = (shares + threads - 1) // threads
        # A place that is below the loop's number was left by another loop: nobody has to set places back.
        start = self.get(self.loop) << _SHARES_BITS
        owner = b.variable(I64, me % threads)
        with b.loop(0, threads):
            first = owner.value * each
            last = b.smaller(first + each, shares)
            place = b.offset(self.places, owner.value * (_LINE // 8), I64)
            with b.repeat_while() as go_on_if:
                seen = self.get(place)
                number = first + b.larger(seen - start, 0)
                go_on_if(number < last)
                found = b.ir.cmpxchg(place.ir, seen.ir, (start + (number - first + 1)).ir, "seq_cst", "seq_cst")
                with b.when(Value(b, b.ir.extract_value(found, 1), False)):
                    begin = number * share
                    _call_body(b, body, context, begin, b.smaller(begin + share, count))
            owner.value = b.select(owner.value + 1 == threads, b.integer(0), owner.value + 1)


def _call_body(b: Builder, body: Value, context: Value, begin: Value, end: Value) -> None:
    signature = ir.FunctionType(VOID, [POINTER, I64, I64])
    # llvmlite finds the signature of an indirect call in the pointer's type, which a detour by way of a number gives.
    function = b.ir.inttoptr(b.ir.ptrtoint(body.ir, I64), signature.as_pointer())
    b.ir.call(function, [context.ir, begin.ir, end.ir])


def _write_worker(module: ir.Module) -> None:
    b = Builder(module, "flambeau_worker", POINTER, [POINTER])
    pool = _Pool(b)
    me = pool.add(pool.numbered, 1) + 1  # the caller of a loop is number 0
    seen = b.variable(I64, 0)
    with b.repeat_while() as go_on_if:
        patience = b.variable(I64, YIELDS)
        with b.repeat_while() as still:
            still((pool.get(pool.job) == seen.value) & (patience.value > 0))
            pool.system.leave_processor()
            patience.add(-1)
        pool.locked()
        with b.repeat_while() as still:
            still(pool.get(pool.job) == seen.value)
            pool.system.wait(pool.wake, pool.lock)
        seen.value = pool.get(pool.job)
        with b.either(pool.get(pool.is_open) != 0) as (joins, leaves):
            with joins:
                pool.set(pool.active, pool.get(pool.active) + 1)
                pool.unlocked()
                pool.take_shares(me)
                pool.locked()
                pool.set(pool.active, pool.get(pool.active) - 1)
                with b.when(pool.get(pool.active) == 0):
                    pool.system.wake_one(pool.done)
                pool.unlocked()
            with leaves:
                pool.unlocked()
        go_on_if(pool.get(pool.job) >= 0)  # always: workers live as long as the process
    b.give_back(0)


def _write_start(module: ir.Module) -> None:
    """`flambeau_start_workers(wanted)`: signals stay with Python's own threads."""
    b = Builder(module, "flambeau_start_workers", VOID, [I64])
    pool = _Pool(b)
    (wanted,) = b.arguments
    before = pool.system.block_signals()
    worker = Value(b, module.globals["flambeau_worker"])
    with b.repeat_while() as go_on_if:
        go_on_if(pool.get(pool.workers) < wanted)
        go_on_if(pool.system.start_thread(worker))  # too many threads on this machine: those that exist do the work
        pool.add(pool.workers, 1)
    pool.system.restore_signals(before)
    b.give_back()


def _write_team(module: ir.Module) -> None:
    """`flambeau_join(nothing)`: what each thread of another library's team does."""
    b = Builder(module, "flambeau_join", VOID, [POINTER])
    pool = _Pool(b)
    me = _asked(b, pool.get(pool.team_number))
    with b.either(pool.get(pool.taking_part) == _ONE_SHARE_EACH) as (is_short, is_long):
        with is_short:
            _run_own_share(pool, me, _asked(b, pool.get(pool.team_size)))
        with is_long:
            pool.take_shares(me)
    b.give_back()


def _asked(b: Builder, address: Value) -> Value:
    """What a function of a team says, which takes nothing and gives a number."""
    function = b.ir.inttoptr(address.ir, ir.FunctionType(I32, []).as_pointer())
    return Value(b, b.ir.zext(b.ir.call(function, []), I64))


def _run_own_share(pool: _Pool, me: Value, threads: Value) -> None:
    """Run the share of thread `me`, or some neighbours if the team has fewer `threads` than it was asked for."""
    b = pool.b
    count, share = pool.get(pool.count), pool.get(pool.share)
    shares = (count + share - 1) // share
    steps = (shares + threads - 1) // threads * share
    begin = me * steps
    body = Value(b, b.ir.inttoptr(pool.get(pool.body).ir, POINTER))
    context = Value(b, b.ir.inttoptr(pool.get(pool.context).ir, POINTER))
    with b.when(begin < count):
        _call_body(b, body, context, begin, b.smaller(begin + steps, count))


def _run_by_team(b: Builder, run: Value, threads: Value) -> None:
    """Let a library's threads take the shares: it comes back when there are none left."""
    signature = ir.FunctionType(VOID, [POINTER, POINTER, I32, I32])
    function = b.ir.inttoptr(run.ir, signature.as_pointer())
    join = Value(b, b.module.globals["flambeau_join"])
    number = b.ir.trunc(threads.ir, I32)
    b.ir.call(function, [join.ir, b.constant(POINTER, 0).ir, number, ir.Constant(I32, 0)])


def _write_parallel(module: ir.Module) -> None:
    b = Builder(module, "flambeau_parallel", VOID, [POINTER, POINTER, I64, I64])
    pool = _Pool(b)
    body, context, count, grain = b.arguments
    with b.when(count <= 0):
        b.give_back()
    threads = pool.get(pool.threads)
    alone = (threads <= 1) | (count < grain * 2)
    with b.when(alone):
        _call_body(b, body, context, b.integer(0), count)
        b.give_back()
    attempt = b.ir.cmpxchg(pool.taken.ir, ir.Constant(I64, 0), ir.Constant(I64, 1), "seq_cst", "seq_cst")
    with b.when(~Value(b, b.ir.extract_value(attempt, 1), False)):
        _call_body(b, body, context, b.integer(0), count)
        b.give_back()
    threads = b.smaller(threads, MOST_THREADS)
    parts = threads * SHARES_PER_THREAD
    pool.set(pool.share, b.larger(grain, (count + parts - 1) // parts))
    pool.set(pool.body, Value(b, b.ir.ptrtoint(body.ir, I64)))
    pool.set(pool.context, Value(b, b.ir.ptrtoint(context.ir, I64)))
    pool.set(pool.count, count)
    pool.set(pool.taking_part, threads)
    pool.add(pool.loop, 1)
    team = pool.get(pool.team)
    with b.when(team != 0):
        # A team waits for all its threads at the end of a loop: in a short one, to look for others' shares takes longer
        # than it saves, and takes these away from where their elements are.
        with b.when(count < parts * grain):
            sharing = b.smaller(threads, count // grain)
            pool.set(pool.share, (count + sharing - 1) // sharing)
            pool.set(pool.taking_part, _ONE_SHARE_EACH)
        _run_by_team(b, team, threads)
        pool.set(pool.taken, 0)
        b.give_back()
    with b.when(pool.get(pool.workers) < threads - 1):
        b.call("flambeau_start_workers", VOID, [threads - 1])
    pool.locked()
    pool.set(pool.is_open, 1)
    pool.add(pool.job, 1)
    pool.system.wake_all(pool.wake)
    pool.unlocked()
    pool.take_shares(b.integer(0))
    # Nobody can join from here on: who came too late is not waited for.
    pool.locked()
    pool.set(pool.is_open, 0)
    pool.unlocked()
    patience = b.variable(I64, YIELDS)
    with b.repeat_while() as still:
        still((pool.get(pool.active) != 0) & (patience.value > 0))
        pool.system.leave_processor()
        patience.add(-1)
    pool.locked()
    with b.repeat_while() as still:
        still(pool.get(pool.active) != 0)
        pool.system.wait(pool.done, pool.lock)
    pool.unlocked()
    pool.set(pool.taken, 0)
    b.give_back()


def _write_settings(module: ir.Module) -> None:
    b = Builder(module, "flambeau_set_threads", VOID, [I64])
    pool = _Pool(b)
    pool.set(pool.threads, b.arguments[0])
    b.give_back()
    b = Builder(module, "flambeau_set_team", VOID, [I64, I64, I64])
    pool = _Pool(b)
    pool.set(pool.team_number, b.arguments[1])
    pool.set(pool.team_size, b.arguments[2])
    pool.set(pool.team, b.arguments[0])
    b.give_back()
    b = Builder(module, "flambeau_pool_size", I64, [])
    b.give_back(_Pool(b).get(_Pool(b).workers))
    b = Builder(module, "flambeau_after_fork", VOID, [])
    pool = _Pool(b)
    pool.system.new_lock(pool.lock)
    pool.system.new_condition(pool.wake)
    pool.system.new_condition(pool.done)
    for place in (pool.workers, pool.numbered, pool.taken, pool.is_open, pool.active, pool.team):
        pool.set(place, 0)
    b.give_back()


def write(module: ir.Module) -> ir.Module:
    """Write the pool into an empty module."""
    _write_worker(module)
    _write_start(module)
    _write_team(module)
    _write_parallel(module)
    _write_settings(module)
    return module


_addresses: dict[str, int] = {}


def install(engine: Engine) -> None:
    """Compile or load the pool, and make it known to all kernels."""
    _addresses.update(engine.load("threads", (), lambda: write(engine.new_module("threads")), _FUNCTIONS))
    engine.symbols["flambeau_parallel"] = _addresses["flambeau_parallel"]
    _reset()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_reset)
    when_changed(set_threads)
    when_offered(_set_team)


def _reset() -> None:
    ctypes.CFUNCTYPE(None)(_addresses["flambeau_after_fork"])()


def set_threads(count: int) -> None:
    """Use that many threads from now on, the calling one included. Before the pool exists there is nothing to tell."""
    if _addresses:
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(_addresses["flambeau_set_threads"])(count)


def _set_team(run: int, number: int, size: int) -> None:
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(_addresses["flambeau_set_team"])(run, number, size)


def pool_size() -> int:
    """How many workers there are beside the callers."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(_addresses["flambeau_pool_size"])()) if _addresses else 0
