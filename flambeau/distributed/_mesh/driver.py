"""Moves bytes over all links, and resumes the tasks that waited for them.

Whoever waits drives: a synchronous collective runs in the thread that called it, without a switch to another thread.
Only what was started and is not being waited for is driven by a thread of its own, which sleeps otherwise.
"""

from __future__ import annotations

import contextlib
import math
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ..._core.process.caller import Place, describe_place
from ..._core.process.locks import new_condition
from .._errors import DistBackendError
from .._forks import close_in_children
from .connect import Connections
from .links import CONTROL, FAILURE, FAREWELL, Broken, Link
from .requests import Key, Receive, Request, Send, Steps, Task

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_LONGEST_SLEEP = 1.0
"""Seconds between two looks at the clock."""
_FAREWELL_TIME = 5.0


class Driver:
    """The links of a process and what is under way on them."""

    def __init__(self, rank: int, connections: Connections) -> None:
        self.rank = rank
        self._connections = connections
        self.arena = connections.arena
        self.memories = connections.memories
        self._changed = new_condition()
        self._own: list[Any] = []
        """The selector and the two ends of the bell, to be closed."""
        try:
            self._own.append(selectors.DefaultSelector())
            self._own += socket.socketpair()
            self._selector, self._bell, self._rope = self._own
            self.links = {peer: Link(peer, connection, self) for peer, connection in connections.sockets.items()}
            for link in self.links.values():
                self._selector.register(link.connection, _READ, link)
            self._bell.setblocking(False)
            self._rope.setblocking(False)
            self._selector.register(self._bell, _READ, None)
        except BaseException:
            self._release()
            raise
        self._from_anyone: dict[Key, deque[Receive]] = {}
        self._ready: deque[Task] = deque()
        self._driving: int | None = None
        """The thread that moves bytes at the moment."""
        self._waiting = 0
        self._unattended: set[Task] = set()
        """Tasks that nobody may be waiting for."""
        self._callbacks: list[Callable[[], None]] = []
        self._background: threading.Thread | None = None
        self.failure: str | None = None
        """Why nothing can be started any more."""
        self._closed = False
        close_in_children(self)

    # ----- what algorithms call, while the lock is held --------------------------------------------------------

    def send(self, peer: int, key: Key, signature: int, payload: memoryview) -> Send:
        """Send a message to a process."""
        link = self.links[peer]
        try:
            message = link.send(key[0], signature, key[1], payload)
        except Broken as error:
            self._lose(link, str(error))
            message = Send([])
            message.error, message.done = DistBackendError(str(error)), True
        if not message.done:
            self._want_to_write(link, True)
        return message

    def receive(self, peer: int | None, key: Key, signature: int, buffer: memoryview) -> Receive:
        """Expect a message from a process, or from anyone."""
        receive = Receive(peer, key, signature, buffer)
        if peer is not None:
            self.links[peer].expect(receive)
            return receive
        early = next((link for link in self.links.values() if link.arrived.get(key)), None)
        if early is not None:
            early.expect(receive)
        elif gone := next((link.gone for link in self.links.values() if link.gone), None):
            receive.error, receive.done = DistBackendError(gone), True
        else:
            self._from_anyone.setdefault(key, deque()).append(receive)
        return receive

    def forget(self, receive: Receive) -> None:
        """Expect a message no longer."""
        queues = [self._from_anyone] if receive.peer is None else [self.links[receive.peer].expected]
        for waiting in queues:
            queue = waiting.get(receive.key)
            if queue and receive in queue:
                queue.remove(receive)

    # ----- what links call -------------------------------------------------------------------------------------

    def completed(self, request: Request) -> None:
        """Let the task that waits for the request go on."""
        request.done = True
        task = request.task
        if task is not None:
            task.missing -= 1
            if task.missing == 0 or request.error is not None:
                self._ready.append(task)

    def receive_from_anyone(self, key: Key) -> Receive | None:
        """A request that any process may satisfy."""
        waiting = self._from_anyone.get(key)
        if not waiting:
            return None
        receive = waiting.popleft()
        if not waiting:
            del self._from_anyone[key]
        return receive

    # ----- tasks -----------------------------------------------------------------------------------------------

    def start(self, steps: Steps, label: str, limit: float, place: Place | None) -> Task:
        """Begin an algorithm: it runs until it has to wait."""
        task = Task(steps, label, limit, place)
        with self._changed:
            if self.failure is not None:
                task.fail(DistBackendError(self.failure))
            elif task.advance():
                self._finished(task)
            self._resume_ready()
            if not task.done and self._driving is not None:
                self._ring()
        return task

    def start_apart(self, steps: Steps) -> None:
        """Begin what nobody waits for, from within an algorithm: it goes on with whatever moves bytes next."""
        Task(steps, "the end of a collective", math.inf, None).advance()

    def wait(self, task: Task, limit: float | None = None) -> None:
        """Wait for a task, and move bytes meanwhile; an error of the task is raised."""
        if not task.done:
            deadline = task.deadline if limit is None else time.monotonic() + limit
            try:
                self._drive(lambda: task.done, lambda: deadline)
            except DistBackendError as error:
                self._fail([task], error)
            if not task.done:
                with self._changed:
                    self._give_up(task, task.limit if limit is None else limit)
        if task.error is not None:
            raise task.error

    def wait_quietly(self, task: Task) -> bool:
        """Wait for a task to the end of its time without telling anybody that it failed; whether it did."""
        if not task.done:
            self._drive(lambda: task.done, lambda: task.deadline)
        with self._changed:
            if not task.done:
                for request in task.waits_for:
                    if isinstance(request, Receive) and not request.done:
                        self.forget(request)
                task.fail(DistBackendError("Timed out"))
        return task.error is not None

    def attend(self, task: Task) -> None:
        """Let a thread of its own take care of a task."""
        with self._changed:
            if not task.done:
                self._unattended.add(task)
                with contextlib.suppress(RuntimeError):  # without another thread, whoever waits moves it along
                    self._wake_background()

    def when_done(self, task: Task, callback: Callable[[], None]) -> None:
        """Call back when a task is over, from the thread that takes care of tasks."""
        with self._changed:
            self._wake_background()
            if task.done:
                self._callbacks.append(callback)
            else:
                task.callbacks.append(callback)
                self._unattended.add(task)
            self._wake_background()

    def _wake_background(self) -> None:
        if self._background is None:
            background = threading.Thread(target=self._run, name="flambeau collectives", daemon=True)
            background.start()
            self._background = background
        self._changed.notify_all()
        if self._callbacks and self._driving == self._background.ident:
            self._ring()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._has_to_attend)
                if self._closed:
                    return
            try:
                self._drive(lambda: not self._unattended or bool(self._callbacks) or self._closed, self._next_deadline)
            except Exception as error:  # the thread goes on: callbacks wait for it
                self._fail(self._unattended, error)
            with self._changed:
                now = time.monotonic()
                for task in [each for each in self._unattended if each.deadline <= now]:
                    self._give_up(task, task.limit)
                callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback()

    def _has_to_attend(self) -> bool:
        return bool(self._unattended or self._callbacks) or self._closed

    def _next_deadline(self) -> float:
        return min((each.deadline for each in tuple(self._unattended)), default=time.monotonic() + _LONGEST_SLEEP)

    def _give_up(self, task: Task, limit: float) -> None:
        """A task took too long: the processes it waits for are named, here and on all others."""
        if task.done:
            return
        peers = task.peers_missing()
        named = " and ".join(f"rank {peer}" for peer in peers) if peers else "the others"
        task.fail(
            DistBackendError(
                f"Timed out: rank {self.rank} waited {limit:.3g} s for {named} in {task.label}, called at "
                f"{describe_place(task.place)}. A process may be stopped, busy, or doing something else"
            )
        )
        self._finished(task)

    def _fail(self, tasks: Iterable[Task], error: Exception) -> None:
        """End tasks that nothing can move along any more."""
        with self._changed:
            for task in [each for each in tasks if not each.done]:
                task.fail(error)
                self._finished(task)

    def _finished(self, task: Task) -> None:
        self._unattended.discard(task)
        if task.callbacks:
            self._callbacks += task.callbacks
            task.callbacks = []
            self._wake_background()
        error = task.error
        if error is not None:
            said = str(error) if isinstance(error, DistBackendError) else f"{type(error).__name__} {error}"
            self.abort(said if "rank " in said else f"rank {self.rank} failed in {task.label}: {said}")
        if self._waiting:
            self._changed.notify_all()

    # ----- driving ---------------------------------------------------------------------------------------------

    def _drive(self, done: Callable[[], bool], deadline: Callable[[], float]) -> None:
        """Move bytes until something is done or it is too late; if another thread does it already, wait for that."""
        me = threading.get_ident()
        with self._changed:
            self._waiting += 1
            try:
                while not done() and self._driving is not None:
                    remaining = deadline() - time.monotonic()
                    if remaining <= 0:
                        return
                    self._changed.wait(min(remaining, _LONGEST_SLEEP))
                if done():
                    return
                self._driving = me
            finally:
                self._waiting -= 1
        try:
            while not done():
                remaining = deadline() - time.monotonic()
                if remaining <= 0:
                    return
                self._poll(min(remaining, _LONGEST_SLEEP))
        finally:
            with self._changed:
                self._driving = None
                if self._waiting or self._has_to_attend():
                    self._changed.notify_all()  # somebody else has to drive now

    def progress(self) -> None:
        """Move what can be moved at once, unless another thread is doing it."""
        with self._changed:
            if self._driving is None and not self._closed:
                self._poll(0)

    def _poll(self, limit: float) -> None:
        try:
            events = self._selector.select(limit)
        except OSError as error:
            raise DistBackendError(f"rank {self.rank} cannot look at its connections: {error}") from error
        with self._changed:
            for key, mask in events:
                link = key.data
                if link is None:
                    with contextlib.suppress(BlockingIOError):
                        self._bell.recv(4096)
                    continue
                try:
                    if mask & _WRITE and not link.flush():
                        self._want_to_write(link, False)
                    if mask & _READ:
                        link.read()
                except Broken as error:
                    self._lose(link, str(error))
                except BaseException as error:  # no memory, or an interrupt in the middle of a message
                    what = f"rank {self.rank} lost its connection with rank {link.peer}: {type(error).__name__} {error}"
                    self._lose(link, what)
                    self.abort(what)
                    raise
                self._resume_ready()

    def _resume_ready(self) -> None:
        while self._ready:
            task = self._ready.popleft()
            if not task.done and task.advance():
                self._finished(task)

    def _ring(self) -> None:
        """Let the thread that drives look again at what it waits for."""
        if self._driving != threading.get_ident():
            with contextlib.suppress(BlockingIOError, OSError):
                self._rope.send(b"x")

    def _want_to_write(self, link: Link, wanted: bool) -> None:
        if link.gone is None:
            self._selector.modify(link.connection, _READ | _WRITE if wanted else _READ, link)

    # ----- the end ---------------------------------------------------------------------------------------------

    def _lose(self, link: Link, reason: str) -> None:
        if link.gone is None:
            self._selector.unregister(link.connection)
        link.fail(reason)
        for queue in self._from_anyone.values():
            for receive in queue:
                receive.error = DistBackendError(reason)
                self.completed(receive)
        self._from_anyone.clear()

    def abort(self, reason: str) -> None:
        """Tell all other processes what failed; nothing can be started any more."""
        if self.failure is not None:
            return
        self.failure = reason
        text = memoryview(reason.encode()[: 1 << 15])
        for link in self.links.values():
            with contextlib.suppress(Broken):
                if link.gone is None:
                    link.send(CONTROL, 0, FAILURE, text)

    def close_in_child(self) -> None:
        """In a forked process: leave the connections to the one that made them."""
        self._connections.close()
        self._bell.close()
        self._rope.close()
        self._closed = True
        self._background = self._driving = None
        self.failure = "this process was forked from one of the group, and is none of its ranks itself"

    def close(self) -> None:
        """Say farewell and close all connections."""
        with self._changed:
            if self._closed:
                return
        try:
            self._say_farewell()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
                self._ring()
            if self._background is not None and self._background is not threading.current_thread():
                self._background.join(_FAREWELL_TIME)
            with self._changed:
                for link in self.links.values():
                    link.fail("this process has left the group")
                self.failure = self.failure or "the process group has been destroyed"
                self._release()

    def _say_farewell(self) -> None:
        with self._changed:
            for link in self.links.values():
                with contextlib.suppress(Broken):
                    if link.gone is None:
                        link.send(CONTROL, 0, FAREWELL, memoryview(b""))
        end = time.monotonic() + _FAREWELL_TIME
        with contextlib.suppress(DistBackendError):
            self._drive(lambda: not any(link.outgoing for link in self.links.values()), lambda: end)

    def _release(self) -> None:
        self._connections.close()
        for each in self._own:
            each.close()
