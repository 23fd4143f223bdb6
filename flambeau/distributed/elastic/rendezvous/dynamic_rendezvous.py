"""Meeting where nobody knows beforehand who comes: a state that all change in turn says who is there."""

from __future__ import annotations

import itertools
import json
import os
import random
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ...stores import PrefixStore
from .api import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

__all__ = [
    "DynamicRendezvousHandler", "RendezvousBackend", "RendezvousSettings", "RendezvousTimeout", "create_handler",
]  # fmt: skip


class RendezvousBackend(ABC):
    """Where the state of a meeting is kept."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the kind of rendezvous."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Any] | None:
        """The state, and what stands for it; None before there is one."""

    @abstractmethod
    def set_state(self, state: bytes, token: Any = None) -> tuple[bytes, Any, bool] | None:
        """Exchange the state that `token` stands for; what is there now, and whether that is the new one."""


class RendezvousTimeout:
    """How long a meeting waits: for all, after the least number has come, for its end, and for signs of life."""

    _DEFAULTS = {"join": 600, "last_call": 30, "close": 30, "heartbeat": 5}  # noqa: RUF012  read alone

    def __init__(
        self,
        join: timedelta | None = None,
        last_call: timedelta | None = None,
        close: timedelta | None = None,
        heartbeat: timedelta | None = None,
    ) -> None:
        given = {"join": join, "last_call": last_call, "close": close, "heartbeat": heartbeat}
        self._times: dict[str, timedelta] = {}
        for name, value in given.items():
            own = timedelta(seconds=self._DEFAULTS[name]) if value is None else value
            if own <= timedelta(0):
                raise ValueError(f"The {name} timeout ({own}) must be positive.")
            self._times[name] = own

    @property
    def join(self) -> timedelta:
        """The time in which all come."""
        return self._times["join"]

    @property
    def last_call(self) -> timedelta:
        """The time for more to come, after the least number is there."""
        return self._times["last_call"]

    @property
    def close(self) -> timedelta:
        """The time for the end."""
        return self._times["close"]

    @property
    def heartbeat(self) -> timedelta:
        """The time for one sign of life."""
        return self._times["heartbeat"]


@dataclass(repr=False, eq=False, frozen=True)
class RendezvousSettings:
    """How many meet, how long is waited, and how often signs of life come."""

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int


_State = dict[str, Any]
_numbers = itertools.count()


def _fresh() -> _State:
    return {"round": 0, "complete": False, "closed": False, "deadline": None, "participants": [], "waiting": [], "alive": {}}  # noqa: E501  # fmt: skip


class DynamicRendezvousHandler(RendezvousHandler):
    """One node of such a meeting."""

    def __init__(
        self, node: str, settings: RendezvousSettings, backend_name: str, store: Any, state_holder: RendezvousBackend
    ) -> None:
        if not settings.run_id:
            raise ValueError("The run id must be a non-empty string.")
        if not 0 < settings.min_nodes <= settings.max_nodes:
            raise ValueError(
                f"The minimum number of nodes ({settings.min_nodes}) must be positive and at most the maximum number "
                f"of nodes ({settings.max_nodes})."
            )
        self._node, self._settings, self._backend, self._store = node, settings, state_holder, store
        self._backend_name = backend_name
        self._local_addr: str | None = None
        self._beating: threading.Event | None = None

    @classmethod
    def from_backend(
        cls,
        run_id: str,
        store: Any,
        backend: RendezvousBackend,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        timeout: RendezvousTimeout | None = None,
        keep_alive_interval: int = 5,
        keep_alive_max_attempt: int = 3,
    ) -> DynamicRendezvousHandler:
        """A node of this process."""
        address = local_addr or socket.getfqdn()
        node = f"{address}_{os.getpid()}_{next(_numbers)}"
        settings = RendezvousSettings(
            run_id, min_nodes, max_nodes, timeout or RendezvousTimeout(), timedelta(seconds=keep_alive_interval),
            keep_alive_max_attempt,
        )  # fmt: skip
        made = cls(node, settings, backend.name, store, backend)
        made._local_addr = local_addr
        return made

    @property
    def settings(self) -> RendezvousSettings:
        """How many meet, and how long is waited."""
        return self._settings

    def get_backend(self) -> str:
        """The name of where the state is kept."""
        return self._backend_name

    @property
    def use_agent_store(self) -> bool:
        """Whether workers may use the store of the meeting."""
        return False

    def get_run_id(self) -> str:
        """The name of the meeting."""
        return self._settings.run_id

    # ----- the state -------------------------------------------------------------------------------------------------

    def _without_the_lost(self, state: _State) -> None:
        """Forget nodes that have given no sign of life."""
        own = self._settings
        oldest = time.time() - own.keep_alive_interval.total_seconds() * own.keep_alive_max_attempt
        lost = {node for node, seen in state["alive"].items() if seen < oldest and node != self._node}
        for name in ("participants", "waiting"):
            state[name] = [node for node in state[name] if node not in lost]
        for node in lost:
            del state["alive"][node]
        self._begin_anew_if_left(state)

    def _begin_anew_if_left(self, state: _State) -> None:
        if state["complete"] and not state["participants"]:
            state.update(complete=False, deadline=None, round=state["round"] + 1)

    def _change(self, change: Callable[[_State], None]) -> _State:
        """Change the state; again if others were quicker."""
        while True:
            found = self._backend.get_state()
            state = json.loads(found[0].decode()) if found is not None else _fresh()
            self._without_the_lost(state)
            change(state)
            encoded = json.dumps(state, sort_keys=True).encode()
            if found is not None and encoded == found[0]:
                return state
            answer = self._backend.set_state(encoded, found[1] if found is not None else None)
            if answer is not None and answer[2]:
                return state

    def _read(self) -> _State:
        found = self._backend.get_state()
        return json.loads(found[0].decode()) if found is not None else _fresh()

    # ----- meeting ---------------------------------------------------------------------------------------------------

    def _leave(self, state: _State) -> None:
        for name in ("participants", "waiting"):
            state[name] = [node for node in state[name] if node != self._node]
        state["alive"].pop(self._node, None)
        self._begin_anew_if_left(state)

    def _join(self, state: _State) -> None:
        """Come in while the meeting is open, or wait for the next; the last to be waited for completes it."""
        if state["closed"]:
            return
        if state["complete"]:
            if self._node not in state["participants"] + state["waiting"]:
                state["waiting"].append(self._node)
                state["alive"][self._node] = time.time()
            return
        if self._node not in state["participants"]:
            state["participants"].append(self._node)
            state["alive"][self._node] = time.time()
        state["waiting"] = [node for node in state["waiting"] if node != self._node]
        number, own = len(state["participants"]), self._settings
        if number >= own.min_nodes and state["deadline"] is None:
            state["deadline"] = time.time() + own.timeout.last_call.total_seconds()
        over = state["deadline"] is not None and time.time() >= state["deadline"]
        if number == own.max_nodes or (number >= own.min_nodes and over):
            state.update(complete=True, deadline=None)

    def next_rendezvous(self) -> RendezvousInfo:
        """Leave the meeting before, come to the next, and wait until it is complete."""
        self._stop_heartbeats()
        self._change(self._leave)
        end = time.monotonic() + self._settings.timeout.join.total_seconds()
        while True:
            state = self._change(self._join)
            if state["closed"]:
                self._change(self._leave)
                raise RendezvousClosedError
            if state["complete"] and self._node in state["participants"]:
                break
            if time.monotonic() > end:
                self._change(self._leave)
                raise RendezvousTimeoutError
            self._beat()
            time.sleep(random.uniform(0.02, 0.1))
        self._start_heartbeats()
        nodes = sorted(state["participants"])
        rank = nodes.index(self._node)
        store = PrefixStore(f"torch.rendezvous.{self._settings.run_id}.{state['round']}", self._store)
        place = RendezvousStoreInfo.build(rank, store, self._local_addr)
        return RendezvousInfo(store, rank, len(nodes), place)

    def is_closed(self) -> bool:
        """Whether the meeting is over."""
        return bool(self._read()["closed"])

    def set_closed(self) -> None:
        """End the rendezvous: nobody can join any more."""
        self._change(lambda state: state.update(closed=True))

    def num_nodes_waiting(self) -> int:
        """How many have come late, and wait."""
        return len(self._read()["waiting"])

    def shutdown(self) -> bool:
        """End the meeting; whether that succeeded."""
        self._stop_heartbeats()
        try:
            self.set_closed()
        except RendezvousError:
            return False
        return True

    # ----- signs of life ---------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        def note(state: _State) -> None:
            if self._node in state["alive"]:
                state["alive"][self._node] = time.time()

        self._change(note)

    def _start_heartbeats(self) -> None:
        stop = self._beating = threading.Event()
        pause = self._settings.keep_alive_interval.total_seconds()

        def keep() -> None:
            while not stop.wait(pause):
                try:
                    self._beat()
                except RendezvousError:  # noqa: PERF203  the store may be there again next time
                    continue

        threading.Thread(target=keep, name="rendezvous", daemon=True).start()

    def _stop_heartbeats(self) -> None:
        if self._beating is not None:
            self._beating.set()
            self._beating = None


def create_handler(store: Any, backend: RendezvousBackend, params: RendezvousParameters) -> DynamicRendezvousHandler:
    """The node that parameters describe."""

    def seconds(name: str) -> timedelta | None:
        value = params.get_as_int(f"{name}_timeout")
        return None if value is None else timedelta(seconds=value)

    timeout = RendezvousTimeout(seconds("join"), seconds("last_call"), seconds("close"), seconds("heartbeat"))
    interval, attempts = params.get_as_int("keep_alive_interval", 5), params.get_as_int("keep_alive_max_attempt", 3)
    return DynamicRendezvousHandler.from_backend(
        params.run_id, store, backend, params.min_nodes, params.max_nodes, params.local_addr, timeout,
        int(interval or 5), int(attempts or 3),
    )  # fmt: skip


def create_c10d_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The node whose state is in a store over TCP."""
    from .c10d_rendezvous_backend import create_backend

    backend, store = create_backend(params)
    return create_handler(store, backend, params)
