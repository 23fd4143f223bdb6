"""The state of a meeting in a store over TCP."""

from __future__ import annotations

import socket
from base64 import b64decode, b64encode
from datetime import timedelta
from typing import Any

from ...tcp_store import TCPStore
from .api import RendezvousConnectionError, RendezvousParameters, RendezvousStateError
from .dynamic_rendezvous import RendezvousBackend

__all__ = ["C10dRendezvousBackend", "create_backend"]

_NOTHING = "Y2FuaW1hZGFt"
"""What stands in the store before there is a state."""


class C10dRendezvousBackend(RendezvousBackend):
    """The state under one key, which is exchanged only if nobody else was quicker."""

    def __init__(self, store: Any, run_id: str) -> None:
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store = store
        self._key = "torch.rendezvous." + run_id
        self._call("compare_set", self._key, "", _NOTHING)

    @property
    def name(self) -> str:
        """The name of the kind of rendezvous."""
        return "c10d"

    def _call(self, operation: str, *args: Any) -> Any:
        try:
            return getattr(self._store, operation)(*args)
        except (ValueError, RuntimeError, TimeoutError, OSError) as error:
            raise RendezvousConnectionError("The connection to the C10d store has failed. See inner exception for details.") from error  # noqa: E501  # fmt: skip

    def get_state(self) -> tuple[bytes, Any] | None:
        """The state and what stands for it."""
        return self._decoded(self._call("get", self._key))

    def set_state(self, state: bytes, token: Any = None) -> tuple[bytes, Any, bool] | None:
        """Exchange the state for another if it is still the one that `token` stands for."""
        encoded = b64encode(state).decode()
        before = token.decode() if isinstance(token, bytes) else _NOTHING
        now = self._call("compare_set", self._key, before, encoded)
        found = self._decoded(now)
        return None if found is None else (*found, found[0] == state)

    def _decoded(self, value: bytes) -> tuple[bytes, Any] | None:
        if value == _NOTHING.encode():
            return None
        try:
            return b64decode(value), value
        except ValueError as error:
            raise RendezvousStateError("The state object is corrupt. See inner exception for details.") from error


def _is_this_machine(host: str) -> bool:
    names = {"localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()}
    if host in names:
        return True
    try:
        own = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None)}
        return bool({each[4][0] for each in socket.getaddrinfo(host, None)} & own)
    except OSError:
        return False


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Any]:
    """The backend and the store at the endpoint "host:port"; whoever is there first, on that machine, opens it."""
    host, _, port = params.endpoint.strip().rpartition(":")
    host, port = (host, port) if host else (port or "localhost", "29400")
    given = params.get_as_bool("is_host")
    is_host = _is_this_machine(host) if given is None else given
    timeout = timedelta(seconds=params.get_as_int("read_timeout", 60) or 60)
    for opens in (is_host, not is_host):
        try:
            store = TCPStore(host, int(port), None, opens, timeout, wait_for_workers=False)
            break
        except (ValueError, RuntimeError, TimeoutError, OSError) as error:
            if opens is not is_host or given is not None:
                raise RendezvousConnectionError("The connection to the C10d store has failed. See inner exception for details.") from error  # noqa: E501  # fmt: skip
    return C10dRendezvousBackend(store, params.run_id), store
