"""The collectives on elements in memory that all members share: they are read and written where they are.

A message says only where something is, or that it has been used. What is no part of an arena is copied into a piece of
it first, in rounds, so that the pieces stay small. Sums are made in the order of ranks, as those over connections are:
the bits are the same.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from ..reductions import Combine
from .algorithms import CHUNK, SMALL, Exchange, chunks, parts
from .arena import PLACE_LENGTH, Arena, Extent, Place
from .links import different_things
from .requests import Request, Steps
from .signatures import describe, through_shared_memory

_ROUND = 1 << 23
"""Bytes of a member's elements in one round."""
_CHUNK_OF_BROADCAST = 1 << 20
_IN_FLIGHT = 4
"""Chunks of a broadcast that may wait to be read."""
SHORT_BROADCAST = 1 << 20
"""Bytes up to which a broadcast is better sent: who sends has not to wait until all have read."""


def _rounds(array: Any, step: int = _ROUND) -> list[Any]:
    count = max(1, step // array.itemsize)
    return [array[start : start + count] for start in range(0, array.size, count)]


class _Shared:
    """The messages of a collective through shared memory."""

    def __init__(self, exchange: Exchange) -> None:
        driver, group, tag = exchange.driver, *exchange.key
        assert driver.arena is not None
        bits = through_shared_memory(exchange.signature)
        self.arena: Arena = driver.arena
        self.rank, self.size = exchange.rank, exchange.size
        self._plain = exchange.signature
        self._places = Exchange(driver, exchange.ranks, exchange.rank, (group, tag), bits)
        self._notes = Exchange(driver, exchange.ranks, exchange.rank, (group, tag - 1), bits)

    def others(self) -> list[int]:
        return list(self._places.others())

    def show(self, place: Place, peers: Sequence[int]) -> None:
        """Tell members where something is."""
        message = np.frombuffer(place.pack(), np.uint8)
        for peer in peers:
            self._places.send(peer, message)

    def windows(self, peers: Sequence[int], length: int) -> Generator[Sequence[Request], None, dict[int, Any]]:
        """What members show, each of which must be of this many bytes."""
        messages = {peer: np.empty(PLACE_LENGTH, np.uint8) for peer in peers}
        yield [self._places.receive(peer, message) for peer, message in messages.items()]
        places = {peer: Place.unpack(message.tobytes()) for peer, message in messages.items()}
        return {peer: self._window(peer, place, length) for peer, place in places.items()}

    def _window(self, peer: int, place: Place, length: int) -> Any:
        driver, other = self._places.driver, self._places.ranks[peer]
        if place.length != length:
            theirs, mine = describe(self._plain, place.length), describe(self._plain, length)
            raise different_things(other, theirs, driver.rank, mine)
        return driver.memories[other].window(place)

    def note(self, peers: Sequence[int]) -> None:
        """Tell members that what they have shown is no longer needed."""
        nothing = np.empty(0, np.uint8)
        for peer in peers:
            self._notes.send(peer, nothing)

    def notes(self, peers: Sequence[int]) -> Steps:
        """Wait until members say so."""
        nothing = np.empty(0, np.uint8)
        yield [self._notes.receive(peer, nothing) for peer in peers]

    def when_noted(self, peers: Sequence[int], then: Callable[[], object], rounds: int = 1) -> None:
        """Do something when members have said so in all rounds: nobody has to wait for that."""

        def steps() -> Steps:
            for _ in range(rounds):
                yield from self.notes(peers)
            then()

        self._places.driver.start_apart(steps())


def _part(window: Any, begin: int, like: Any) -> Any:
    """The elements of a window from a byte on, as many as an array has."""
    return window[begin : begin + like.nbytes].view(like.dtype)


def _bounds(arrays: Sequence[Any]) -> list[int]:
    """Where arrays begin, in bytes, if they are put one behind the other; and where the last one ends."""
    return [0, *itertools.accumulate(array.nbytes for array in arrays)]


def _combine_own(rank: int, own: Any, out: Any, others: dict[int, Any], combine: Combine, in_place: bool) -> None:
    """Combine a chunk of all members in the order of ranks, and put it into `out`.

    `in_place`: that is the own chunk itself. Then what rank 0 has shown is the sum at first: nobody needs it any more.
    """
    if not in_place and np.may_share_memory(out, own):
        own = own.copy()
    total = others[0] if in_place and rank else out
    if not in_place:
        np.copyto(out, others[0] if rank else own)
    for peer in range(1, len(others) + 1):
        combine(total, own if peer == rank else others[peer])
    if total is not out:
        np.copyto(out, total)


def _reduced(
    shared: _Shared, inputs: Sequence[Any], out: Any, combine: Combine, place: Place | None, everywhere: bool
) -> Steps:
    """One round: the inputs are at `place`, one behind the other; each member combines those that are its own.

    `everywhere`: it then writes the result where the others have shown theirs. Whoever calls sees to the notes of the
    others, that they have done so.
    """
    assert place is not None
    rank, peers, bounds = shared.rank, shared.others(), _bounds(inputs)
    shared.show(place, peers)
    windows = yield from shared.windows(peers, bounds[-1])
    step = max(1, CHUNK // out.itemsize) * out.itemsize
    for own, result, begin in zip(chunks(inputs[rank]), chunks(out), range(bounds[rank], 1 << 62, step), strict=False):
        others = {peer: _part(window, begin, own) for peer, window in windows.items()}
        _combine_own(rank, own, result, others, combine, everywhere)
        if everywhere:
            for peer, other in others.items():
                if peer:  # what rank 0 has shown is where the sum was made
                    np.copyto(other, result)
    shared.note(peers)


def all_reduce(exchange: Exchange, array: Any, combine: Combine) -> Steps:
    """Combine the arrays of all members, on all of them; an array that is in the arena is combined where it is.

    The rounds are the same either way: another member may have its array elsewhere.
    """
    shared = _Shared(exchange)
    extent = None if shared.arena.place_of(array) else shared.arena.take(min(array.nbytes, _ROUND))
    for piece in _rounds(array):
        pieces = parts(piece, shared.size)
        if extent is None:
            yield from _reduced(shared, pieces, pieces[shared.rank], combine, shared.arena.place_of(piece), True)
            yield from shared.notes(shared.others())
            continue
        copies = _copied(extent, pieces, shared.rank)
        yield from _reduced(shared, pieces, pieces[shared.rank], combine, extent.place(0, piece.nbytes), True)
        yield from shared.notes(shared.others())
        for peer in shared.others():
            np.copyto(pieces[peer], copies[peer])
    if extent is not None:
        shared.arena.give_back(extent)


def _copied(extent: Extent, arrays: Sequence[Any], skipped: int = -1) -> list[Any]:
    """The arrays one behind the other in an extent; the place of one of them may be left empty."""
    memory = extent.bytes()
    copies = [_part(memory, begin, array) for begin, array in zip(_bounds(arrays), arrays, strict=False)]
    for index, (copy, array) in enumerate(zip(copies, arrays, strict=True)):
        if index != skipped:
            np.copyto(copy, array)
    return copies


def reduce_scatter(exchange: Exchange, out: Any, inputs: Sequence[Any], combine: Combine) -> Steps:
    """Combine the n-th arrays of all members on the n-th member. What nobody changes any more is combined where it is,
    if it is no more than one round.
    """
    shared = _Shared(exchange)
    peers = shared.others()
    longest = max(array.size for array in inputs)
    count = max(1, _ROUND // shared.size // out.itemsize)
    there = shared.arena.place_of_passing(inputs) if longest <= count else None
    if there is not None:
        yield from _reduced(shared, inputs, out, combine, there, False)
        shared.when_noted(peers, lambda: inputs)  # which holds them until then
        return
    extent = shared.arena.take(shared.size * min(longest, count) * out.itemsize)
    for start in range(0, longest, count):
        if start:
            yield from shared.notes(peers)
        pieces = [array[start : start + count] for array in inputs]
        _copied(extent, pieces, shared.rank)
        place = extent.place(0, sum(piece.nbytes for piece in pieces))
        yield from _reduced(shared, pieces, out[start : start + count], combine, place, False)
    shared.when_noted(peers, functools.partial(shared.arena.give_back, extent))


def all_gather(exchange: Exchange, outs: Sequence[Any], own: Any) -> Steps:
    """The arrays of all members, on all of them; one that nobody changes any more is read where it is."""
    shared = _Shared(exchange)
    rank, peers = shared.rank, shared.others()
    if outs[rank] is not own:
        np.copyto(outs[rank], own)
    extent = None if shared.arena.place_of_passing([own]) else shared.arena.take(min(own.nbytes, _ROUND))
    rounds = _rounds(own)
    for number, piece in enumerate(rounds):
        if extent is None:
            place = shared.arena.place_of(piece)
            assert place is not None
        else:
            if number:
                yield from shared.notes(peers)
            np.copyto(_part(extent.bytes(), 0, piece), piece)
            place = extent.place(0, piece.nbytes)
        shared.show(place, peers)
        windows = yield from shared.windows(peers, piece.nbytes)
        for peer, window in windows.items():
            np.copyto(_rounds(outs[peer])[number], window.view(piece.dtype))
        shared.note(peers)
    if extent is None:
        shared.when_noted(peers, lambda: own, len(rounds))
    else:
        shared.when_noted(peers, functools.partial(shared.arena.give_back, extent))


def all_to_all(exchange: Exchange, outs: Sequence[Any], inputs: Sequence[Any]) -> Steps:
    """The n-th member gets the n-th array of each. Both sides know how long it is: what is short is sent."""
    shared = _Shared(exchange)
    peers, step = shared.others(), _ROUND // shared.size
    waits: list[Request] = [exchange.receive(peer, outs[peer]) for peer in peers if outs[peer].nbytes <= SMALL]
    waits += [exchange.send(peer, inputs[peer]) for peer in peers if inputs[peer].nbytes <= SMALL]
    np.copyto(outs[shared.rank], inputs[shared.rank])
    given = {peer: _rounds(inputs[peer], step) for peer in peers if inputs[peer].nbytes > SMALL}
    taken = {peer: _rounds(outs[peer], step) for peer in peers if outs[peer].nbytes > SMALL}
    extent = shared.arena.take(max(1, sum(pieces[0].nbytes for pieces in given.values())))
    shown: list[int] = []
    for number in range(max(map(len, (*given.values(), *taken.values())), default=0)):
        yield from shared.notes(shown)
        shown = [peer for peer, pieces in given.items() if number < len(pieces)]
        pieces = [given[peer][number] for peer in shown]
        _copied(extent, pieces)
        for peer, piece, begin in zip(shown, pieces, _bounds(pieces), strict=False):
            shared.show(extent.place(begin, piece.nbytes), [peer])
        for peer in [peer for peer, pieces in taken.items() if number < len(pieces)]:
            piece = taken[peer][number]
            windows = yield from shared.windows([peer], piece.nbytes)
            np.copyto(piece, windows[peer].view(piece.dtype))
            shared.note([peer])
    shared.when_noted(shown, functools.partial(shared.arena.give_back, extent))
    yield waits


def broadcast(exchange: Exchange, array: Any, root: int) -> Steps:
    """The array of one member, on all of them: it copies a chunk while the others read those before."""
    shared = _Shared(exchange)
    pieces = _rounds(array, _CHUNK_OF_BROADCAST)
    if shared.rank != root:
        for piece in pieces:
            windows = yield from shared.windows([root], piece.nbytes)
            np.copyto(piece, windows[root].view(piece.dtype))
            shared.note([root])
        return
    peers = shared.others()
    extents = [shared.arena.take(piece.nbytes) for piece in pieces[:_IN_FLIGHT]]
    for number, piece in enumerate(pieces):
        if number >= _IN_FLIGHT:
            yield from shared.notes(peers)
        extent = extents[number % _IN_FLIGHT]
        np.copyto(_part(extent.bytes(), 0, piece), piece)
        shared.show(extent.place(0, piece.nbytes), peers)
    for extent in extents:
        yield from shared.notes(peers)
        shared.arena.give_back(extent)
