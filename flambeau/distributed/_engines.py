"""What a process group needs from whatever moves its bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Pending(Protocol):
    """A call that is under way."""

    def is_done(self) -> bool:
        """Whether it is over, well or not."""

    def error(self) -> BaseException | None:
        """The error that ended the collective, or None."""

    def wait(self, limit: float | None = None) -> None:
        """Wait until it is over; what went wrong is raised."""

    def attend(self) -> None:
        """Let it go on while nobody waits for it."""

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back, from whatever thread, when it is over."""

    def source(self) -> int:
        """The member from which a received message came."""

    def span(self) -> tuple[int, int] | None:
        """When it began and when it ended, as `perf_counter_ns` says; None: that is not known."""


class Engine(Protocol):
    """Collectives between the members of one group, on contiguous flat arrays: of the host, and others it `takes`.

    Each call starts, and returns what is under way. All members call the same in the same order.
    """

    name: str
    rank: int
    size: int

    def all_reduce(self, array: Any, op: int) -> Pending:
        """Combine the arrays of all members, on all of them."""

    def reduce(self, array: Any, root: int, op: int) -> Pending:
        """Combine the arrays of all members, on one of them."""

    def broadcast(self, array: Any, root: int) -> Pending:
        """The array of one member, on all of them."""

    def all_gather(self, outs: Sequence[Any], own: Any) -> Pending:
        """The arrays of all members, on all of them."""

    def gather(self, outs: Sequence[Any] | None, own: Any, root: int) -> Pending:
        """The arrays of all members, on one of them."""

    def scatter(self, out: Any, inputs: Sequence[Any] | None, root: int) -> Pending:
        """The arrays of one member, one for each."""

    def reduce_scatter(self, out: Any, inputs: Sequence[Any], op: int) -> Pending:
        """Combine the n-th arrays of all members on the n-th member."""

    def all_to_all(self, outs: Sequence[Any], inputs: Sequence[Any]) -> Pending:
        """The n-th member gets the n-th array of each."""

    def barrier(self) -> Pending:
        """Nobody goes on before everybody has come."""

    def send(self, array: Any, peer: int, tag: int) -> Pending:
        """Send a message to a member."""

    def receive(self, array: Any, peer: int | None, tag: int) -> Pending:
        """Receive a message from a member, or from whoever sends first."""

    def absent_members(self, limit: float, wait_all: bool) -> list[int]:
        """A barrier with a look at the clock: on the first member, those that did not come."""

    def takes(self, array: Any) -> bool:
        """Whether collectives run on such an array as it is; otherwise they are given a copy in the host's memory."""

    def progress(self) -> bool:
        """Move along what is under way without waiting; False: it moves better if somebody attends to it."""

    def empty(self, count: int, array_type: Any, passing: bool = False) -> Any:
        """A flat array of the host where collectives are quickest; if it is `passing`, nobody changes it afterwards."""

    def subgroup(self, ranks: Sequence[int], number: int, timeout: float) -> Engine | None:
        """An engine for some of the members; None for those that are none of them."""

    def close(self) -> None:
        """Leave the group and close its connections."""
