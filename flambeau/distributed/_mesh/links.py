"""A connection with one other process, and the messages on it.

A message is a head and its bytes. The head says to which group and which collective it belongs, how long it is, and
what the sender is doing (`signature`), so that processes that do different things notice it at once.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from typing import Any, NoReturn

from .._errors import DistBackendError
from .requests import Key, Receive, Request, Send
from .signatures import describe

HEAD = struct.Struct("<4sIIqQ")
"""A mark, the group, the signature, the tag, the length."""
MARK = b"flmb"
CONTROL = 0xFFFFFFFF
"""The group of messages about the connection itself."""
FAREWELL, FAILURE = 1, 2
"""Tags of such messages: this process leaves; something failed in it, and the bytes say what."""
_LONGEST_CONTROL = 1 << 16
_SCRATCH = 1 << 16
"""What is shorter is read together with what follows it, into a buffer of this many bytes."""
_LAST_WORDS = 1.0
"""Seconds."""


class Broken(Exception):
    """The connection is of no use any more; the text says why."""


def different_things(peer: int, theirs: str, rank: int, mine: str) -> DistBackendError:
    """The error of a process that hears something else than it expects."""
    return DistBackendError(
        f"the processes do different things: rank {peer} sends for {theirs}, and rank {rank} expects {mine}. Every "
        "process of a group must call the same collectives with the same shapes and dtypes in the same order"
    )


class _Early:
    """A message that came before anybody expected it, or is still coming."""

    __slots__ = ("claimed_by", "complete", "payload", "signature")

    def __init__(self, signature: int, length: int) -> None:
        self.signature = signature
        self.payload = memoryview(bytearray(length))
        self.complete = False
        self.claimed_by: Receive | None = None


class Link:
    """One connection: what waits to be sent, what is expected, and what came before it was."""

    def __init__(self, peer: int, connection: socket.socket, owner: Any) -> None:
        self.peer = peer
        self.connection = connection
        self.owner = owner
        self.outgoing: deque[Send] = deque()
        self.expected: dict[Key, deque[Receive]] = {}
        self.arrived: dict[Key, deque[_Early]] = {}
        self.gone: str | None = None
        """Why nothing can be sent or received any more."""
        self.said_farewell = False
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._begin = self._end = self._kept = 0
        self._control_tag: int | None = None
        self._early: _Early | None = None
        self._target: memoryview | None = None
        self._filled = 0
        self._receive: Receive | None = None

    # ----- sending ------------------------------------------------------------------------------------------

    def send(self, group: int, signature: int, tag: int, payload: memoryview) -> Send:
        """Send a message; what the system does not take at once stays in `outgoing`."""
        head = memoryview(HEAD.pack(MARK, group, signature, tag, payload.nbytes))
        message = Send([head, payload] if payload.nbytes else [head])
        if self.gone is not None:
            message.error, message.done = DistBackendError(self.gone), True
            return message
        self.outgoing.append(message)
        if len(self.outgoing) == 1:
            self.flush()
        return message

    def flush(self) -> bool:
        """Hand over to the system what it takes; whether something is left."""
        try:
            while self.outgoing:
                message = self.outgoing[0]
                sent = self._send_pieces(message.pieces)
                while message.pieces and sent >= message.pieces[0].nbytes:
                    sent -= message.pieces.pop(0).nbytes
                if message.pieces:
                    message.pieces[0] = message.pieces[0][sent:]
                    continue
                self.outgoing.popleft()
                self.owner.completed(message)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            self._hear_last_words()
        return False

    def _hear_last_words(self) -> NoReturn:
        """Read what a process said before it closed its connection, which says why it did."""
        try:
            self.connection.settimeout(_LAST_WORDS)
        except OSError as error:
            raise Broken(f"rank {self.peer} has gone: {error}") from error
        while True:
            self.read()  # which ends in an error

    def _send_pieces(self, pieces: list[memoryview]) -> int:
        if len(pieces) > 1 and hasattr(self.connection, "sendmsg"):
            return self.connection.sendmsg(pieces)
        return self.connection.send(pieces[0])

    # ----- receiving ----------------------------------------------------------------------------------------

    def expect(self, receive: Receive) -> None:
        """Wait for a message, which may have come already."""
        waiting = self.arrived.get(receive.key)
        if waiting:
            early = waiting.popleft()
            if not waiting:
                del self.arrived[receive.key]
            receive.peer = self.peer
            if early.complete:
                self._hand_over(early, receive)
            else:
                early.claimed_by = receive
        elif self.gone is not None:
            receive.error = DistBackendError(self.gone)
            self.owner.completed(receive)
        else:
            self.expected.setdefault(receive.key, deque()).append(receive)

    def read(self) -> None:
        """Take what the system has, and hand it to those who wait."""
        target = self._target
        try:
            if target is not None and target.nbytes - self._filled >= _SCRATCH:
                count = self.connection.recv_into(target[self._filled :])
                self._filled += count
            else:
                count = self.connection.recv_into(self._scratch[self._kept :])
                self._begin, self._end, self._kept = 0, self._kept + count, 0
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise Broken(f"rank {self.peer} has gone: {error}") from error
        if count == 0:
            how = "has left the group" if self.said_farewell else "has gone: it ended without leaving the group"
            raise Broken(f"rank {self.peer} {how}")
        if target is not None and self._target is target and self._filled == target.nbytes:
            self._finish_message()
        while self._begin < self._end and self._take():
            pass

    def _take(self) -> bool:
        """Use some of the bytes in the scratch buffer; False: they are the beginning of a head, which is kept."""
        if self._target is None:
            if self._end - self._begin < HEAD.size:
                self._kept = self._end - self._begin
                self._scratch[: self._kept] = bytes(self._scratch[self._begin : self._end])
                return False
            mark, group, signature, tag, length = HEAD.unpack_from(self._scratch, self._begin)
            self._begin += HEAD.size
            if mark != MARK:
                raise Broken(f"rank {self.peer} sent something that is no message")
            self._start_message(group, signature, tag, length)
        target = self._target
        if target is not None:
            count = min(self._end - self._begin, target.nbytes - self._filled)
            target[self._filled : self._filled + count] = self._scratch[self._begin : self._begin + count]
            self._begin += count
            self._filled += count
            if self._filled == target.nbytes:
                self._finish_message()
        return True

    def _start_message(self, group: int, signature: int, tag: int, length: int) -> None:
        self._filled = 0
        if group == CONTROL:
            if length > _LONGEST_CONTROL:
                raise Broken(f"rank {self.peer} sent something that is no message")
            self._control_tag = tag
            self._target = memoryview(bytearray(length))
        else:
            receive = self._find((group, tag))
            if receive is None:
                self._early = _Early(signature, length)
                self._target = self._early.payload
                self.arrived.setdefault((group, tag), deque()).append(self._early)
            elif self.mismatch(receive, signature, length):
                self._target = memoryview(bytearray(length))  # nobody is interested in it
                self.owner.completed(receive)
            else:
                self._receive = receive
                self._target = receive.buffer
        if length == 0:
            self._finish_message()

    def _find(self, key: Key) -> Receive | None:
        waiting = self.expected.get(key)
        if waiting:
            receive = waiting.popleft()
            if not waiting:
                del self.expected[key]
            return receive
        found: Receive | None = self.owner.receive_from_anyone(key)
        if found is not None:
            found.peer = self.peer
        return found

    def mismatch(self, receive: Receive, signature: int, length: int) -> bool:
        """Whether the message is not the one that is expected; then the request has the error."""
        if signature == receive.signature and length == receive.buffer.nbytes:
            return False
        mine, theirs = describe(receive.signature, receive.buffer.nbytes), describe(signature, length)
        receive.error = different_things(self.peer, theirs, self.owner.rank, mine)
        return True

    def _finish_message(self) -> None:
        target, self._target = self._target, None
        if self._receive is not None:
            receive, self._receive = self._receive, None
            self.owner.completed(receive)
        elif self._early is not None:
            early, self._early = self._early, None
            early.complete = True
            if early.claimed_by is not None:
                self._hand_over(early, early.claimed_by)
        elif self._control_tag is not None and target is not None:
            tag, self._control_tag = self._control_tag, None
            self._control(tag, target)

    def _hand_over(self, early: _Early, receive: Receive) -> None:
        if not self.mismatch(receive, early.signature, early.payload.nbytes):
            receive.buffer[:] = early.payload
        self.owner.completed(receive)

    def _control(self, tag: int, text: memoryview) -> None:
        if tag == FAREWELL:
            self.said_farewell = True
        else:
            raise Broken(bytes(text).decode(errors="replace"))

    def fail(self, reason: str) -> None:
        """Nothing comes any more: whoever waits gets an error."""
        self.gone = self.gone or reason
        waiting: list[Request] = [each for queue in self.expected.values() for each in queue]
        waiting += [*self.outgoing, *([self._receive] if self._receive else [])]
        if self._early is not None and self._early.claimed_by is not None:
            waiting.append(self._early.claimed_by)
        self.expected.clear()
        self.outgoing.clear()
        self._receive = self._early = None
        for request in waiting:
            request.error = DistBackendError(self.gone)
            self.owner.completed(request)
