"""The collectives, as algorithms over messages between the members of a group.

An algorithm is a generator: it sends and expects messages, and yields those without which it cannot go on. So one
thread moves any number of them along, and none of them needs to know of threads, sockets or timeouts.

Small arrays are reduced by recursive doubling, large ones by a pairwise reduction of parts followed by a pairwise
gathering, broadcasts go down a binomial tree; what is long goes in chunks, so that a chunk is combined or passed on
while the next one is on its way. Each part is combined in the order of ranks on one process and copied from there: all
processes end with the same bits.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..reductions import Combine
from .driver import Driver
from .requests import Receive, Request, Send, Steps, bytes_of

SMALL = 1 << 15
"""Bytes up to which the number of messages matters more than their length."""
CHUNK = 1 << 18
"""Bytes of a chunk: long enough to be worth a message, and short enough to be still in the cache when combined."""
_IN_FLIGHT = 4
"""Chunks of a part that are expected at once."""


class Exchange:
    """The messages of one collective, between members of a group by their ranks in it."""

    def __init__(self, driver: Driver, ranks: Sequence[int], rank: int, key: tuple[int, int], signature: int) -> None:
        self.driver = driver
        self.ranks = ranks
        self.rank = rank
        self.size = len(ranks)
        self.key = key
        self.signature = signature

    def following(self) -> Exchange:
        """The messages of a second phase, which are told apart from those of the first."""
        group, tag = self.key
        return Exchange(self.driver, self.ranks, self.rank, (group, tag - 1), self.signature)

    def send(self, peer: int, array: Any) -> Send:
        """Send the elements of a contiguous array."""
        return self.driver.send(self.ranks[peer], self.key, self.signature, bytes_of(array))

    def receive(self, peer: int, array: Any) -> Receive:
        """Expect elements, into a contiguous array."""
        return self.driver.receive(self.ranks[peer], self.key, self.signature, bytes_of(array))

    def others(self) -> Iterator[int]:
        """The other members, the next one first: so that not all of them talk to the same one at once."""
        return ((self.rank + step) % self.size for step in range(1, self.size))


def chunks(array: Any) -> list[Any]:
    """A flat array in pieces of which each is one message."""
    count = max(1, CHUNK // array.itemsize)
    return [array[start : start + count] for start in range(0, array.size, count)] or [array]


def parts(array: Any, size: int) -> list[Any]:
    """A flat array in as many parts of nearly equal length as there are members."""
    bounds = [array.size * index // size for index in range(size + 1)]
    return [array[begin:end] for begin, end in itertools.pairwise(bounds)]


def all_reduce(exchange: Exchange, array: Any, combine: Combine) -> Steps:
    """Combine the arrays of all members, on all of them."""
    if exchange.size == 1:
        return
    if array.nbytes <= SMALL:
        yield from _recursive_doubling(exchange, array, combine)
        return
    pieces = parts(array, exchange.size)
    own = pieces[exchange.rank]
    following = exchange.following()
    # A part comes back combined only after what it is made of has left this process, so its place is free by then.
    waits: list[Request] = [
        following.receive(peer, piece) for peer in exchange.others() for piece in chunks(pieces[peer])
    ]

    def pass_on(piece: Any) -> None:
        waits.extend(following.send(peer, piece) for peer in exchange.others())

    yield from _reduce_parts(exchange, pieces, own, combine, pass_on)
    yield waits


def all_reduce_in_tree(exchange: Exchange, array: Any, combine: Combine) -> Steps:
    """Combine the arrays of all members, on all of them, for arrays of any length in the order of recursive doubling.

    Neighbours are combined first, then pairs of neighbours: the sum over contiguous parts of a batch is that of a tree
    over the whole of it.
    """
    for piece in chunks(array):
        yield from _recursive_doubling(exchange, piece, combine)


def _recursive_doubling(exchange: Exchange, array: Any, combine: Combine) -> Steps:
    """In each round, everybody exchanges with a partner twice as far away as before.

    Where the number of members is no power of two, those beyond it lend their values to a partner first.
    """
    rank, whole = exchange.rank, 1 << (exchange.size.bit_length() - 1)
    other = np.empty_like(array)
    partner = rank + whole if rank < exchange.size - whole else None
    if rank >= whole:
        sent = exchange.send(rank - whole, array)
        yield (sent, exchange.receive(rank - whole, other))
        np.copyto(array, other)
        return
    if partner is not None:
        yield (exchange.receive(partner, other),)
        combine(array, other)
    distance = 1
    while distance < whole:
        peer = rank ^ distance
        yield (exchange.send(peer, array), exchange.receive(peer, other))
        if peer < rank:  # the same order on both sides: not every combination gives the same bits in either
            combine(other, array)
            np.copyto(array, other)
        else:
            combine(array, other)
        distance *= 2
    if partner is not None:
        yield (exchange.send(partner, array),)


def _reduce_parts(
    exchange: Exchange, inputs: Sequence[Any], out: Any, combine: Combine, pass_on: Callable[[Any], None]
) -> Steps:
    """Each member combines one part: the others send it theirs. `out` may be the own part itself."""
    rank, in_place = exchange.rank, out is inputs[exchange.rank]
    sends: list[Request] = [exchange.send(peer, piece) for peer in exchange.others() for piece in chunks(inputs[peer])]
    results = chunks(out)
    ahead: deque[tuple[dict[int, Any], list[Request]]] = deque()
    free: list[dict[int, Any]] = []

    def expect(piece: Any) -> None:
        spaces = free.pop() if free else {peer: np.empty_like(results[0]) for peer in exchange.others()}
        ahead.append((spaces, [exchange.receive(peer, space[: piece.size]) for peer, space in spaces.items()]))

    for piece in results[:_IN_FLIGHT]:
        expect(piece)
    for number, (own, result) in enumerate(zip(chunks(inputs[rank]), results, strict=True)):
        spaces, receives = ahead.popleft()
        yield receives
        others = {peer: space[: result.size] for peer, space in spaces.items()}
        total = result if rank == 0 else others[0]
        if rank == 0 and not in_place:
            np.copyto(result, own)
        for peer in range(1, exchange.size):
            combine(total, own if peer == rank else others[peer])
        if rank:
            np.copyto(result, total)
        pass_on(result)
        free.append(spaces)
        if number + _IN_FLIGHT < len(results):
            expect(results[number + _IN_FLIGHT])
    yield sends


def reduce_scatter(exchange: Exchange, out: Any, inputs: Sequence[Any], combine: Combine) -> Steps:
    """Combine the n-th arrays of all members on the n-th member."""
    if exchange.size == 1:
        np.copyto(out, inputs[0])
        return
    yield from _reduce_parts(exchange, inputs, out, combine, lambda piece: None)


def all_gather(exchange: Exchange, outs: Sequence[Any], own: Any) -> Steps:
    """The arrays of all members, on all of them."""
    receives: list[Request] = [
        exchange.receive(peer, part) for peer in exchange.others() for part in chunks(outs[peer])
    ]
    sends: list[Request] = [exchange.send(peer, part) for peer in exchange.others() for part in chunks(own)]
    if outs[exchange.rank] is not own:
        np.copyto(outs[exchange.rank], own)
    yield receives + sends


def all_to_all(exchange: Exchange, outs: Sequence[Any], inputs: Sequence[Any]) -> Steps:
    """The n-th member gets the n-th array of each."""
    receives: list[Request] = [exchange.receive(peer, outs[peer]) for peer in exchange.others()]
    sends: list[Request] = [exchange.send(peer, inputs[peer]) for peer in exchange.others()]
    np.copyto(outs[exchange.rank], inputs[exchange.rank])
    yield receives + sends


def gather(exchange: Exchange, outs: Sequence[Any] | None, own: Any, root: int) -> Steps:
    """The arrays of all members, on one of them."""
    if exchange.rank == root:
        assert outs is not None
        receives = [exchange.receive(peer, part) for peer in exchange.others() for part in chunks(outs[peer])]
        np.copyto(outs[root], own)
        yield receives
    else:
        yield [exchange.send(root, part) for part in chunks(own)]


def scatter(exchange: Exchange, out: Any, inputs: Sequence[Any] | None, root: int) -> Steps:
    """The arrays of one member, one for each."""
    if exchange.rank == root:
        assert inputs is not None
        sends = [exchange.send(peer, part) for peer in exchange.others() for part in chunks(inputs[peer])]
        np.copyto(out, inputs[root])
        yield sends
    else:
        yield [exchange.receive(root, part) for part in chunks(out)]


def _tree(exchange: Exchange, root: int) -> tuple[int | None, list[int]]:
    """The parent and the children of this member in the binomial tree of a root, those with most below them first."""
    size, place = exchange.size, (exchange.rank - root) % exchange.size
    bit = 1
    while bit < size and not place & bit:
        bit *= 2
    parent = None if place == 0 else (place - bit + root) % size
    children = []
    while bit > 1:
        bit //= 2
        if place + bit < size:
            children.append((place + bit + root) % size)
    return parent, children


def broadcast(exchange: Exchange, array: Any, root: int) -> Steps:
    """The array of one member, on all of them: a chunk is passed on while the next one comes."""
    parent, children = _tree(exchange, root)
    pieces = chunks(array)
    receives = [] if parent is None else [exchange.receive(parent, piece) for piece in pieces]
    sends: list[Request] = []
    for number, piece in enumerate(pieces):
        if receives:
            yield receives[number : number + 1]
        sends += [exchange.send(child, piece) for child in children]
    yield sends


def reduce(exchange: Exchange, array: Any, root: int, combine: Combine) -> Steps:
    """Combine the arrays of all members on one of them, up the tree; the others keep theirs."""
    parent, children = _tree(exchange, root)
    sends: list[Request] = []
    for piece in chunks(array):
        total = piece if parent is None or not children else piece.copy()
        for child in reversed(children):
            other = np.empty_like(piece)
            yield (exchange.receive(child, other),)
            combine(total, other)
        if parent is not None:
            sends.append(exchange.send(parent, total))
    yield sends


def barrier(exchange: Exchange) -> Steps:
    """Nobody goes on before everybody has come: in each round, a member hears from twice as many."""
    nothing = np.empty(0, np.uint8)
    distance = 1
    while distance < exchange.size:
        there, back = (exchange.rank + distance) % exchange.size, (exchange.rank - distance) % exchange.size
        yield (exchange.send(there, nothing), exchange.receive(back, nothing))
        distance *= 2
