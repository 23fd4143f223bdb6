"""How processes of several machines find each other: the errors, the settings, and the registry of ways.

`flambeau launch` has a way of its own (`docs/distributed.md`); a program may register others here and ask for them.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ...._core.names.same_as import same_as

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError",
    "RendezvousHandler", "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo",
    "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]  # fmt: skip


class RendezvousError(Exception):
    """Processes could not meet."""


class RendezvousClosedError(RendezvousError):
    """The meeting is over."""


class RendezvousTimeoutError(RendezvousError):
    """Not all have come in time."""


class RendezvousConnectionError(RendezvousError):
    """The place of the meeting cannot be reached."""


class RendezvousStateError(RendezvousError):
    """What is known about the meeting makes no sense."""


class RendezvousGracefulExitError(RendezvousError):
    """A process leaves the meeting without being wrong."""


@dataclass
class RendezvousStoreInfo:
    """Where the store of a training is: the first process says it to all others."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank: int, store: Any, local_addr: str | None, server_port: int | None = None) -> RendezvousStoreInfo:
        """Process 0 chooses and tells; the others are told."""
        keys = RendezvousStoreInfo.MASTER_ADDR_KEY, RendezvousStoreInfo.MASTER_PORT_KEY
        if rank == 0:
            from ..utils.distributed import get_free_port

            store.set(keys[0], (local_addr or socket.getfqdn()).encode())
            store.set(keys[1], str(server_port or get_free_port()).encode())
        address, port = (store.get(key).decode() for key in keys)
        return RendezvousStoreInfo(address, int(port))


class RendezvousInfo:
    """What a process knows after the meeting."""

    def __init__(self, store: Any, rank: int, world_size: int, bootstrap_store_info: RendezvousStoreInfo) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self._bootstrap_store_info = bootstrap_store_info

    store: Any = same_as("_store", "The store that all share.")
    rank: int = same_as("_rank", "Which one this process is.")
    world_size: int = same_as("_world_size", "How many there are.")

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Where the store of the training is."""
        return self._bootstrap_store_info


class RendezvousHandler(ABC):
    """A way to meet."""

    @abstractmethod
    def get_backend(self) -> str:
        """The name of the kind of rendezvous."""

    @property
    def use_agent_store(self) -> bool:
        """Whether workers may use the store of the meeting."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Meet the others; waits for them."""

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether the meeting is over."""

    @abstractmethod
    def set_closed(self) -> None:
        """End the rendezvous: nobody can join any more."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many have come late, and wait."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The name of the meeting."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Close what is open."""


_TRUE, _FALSE = ("1", "true", "t", "yes", "y"), ("0", "false", "f", "no", "n")


class RendezvousParameters:
    """What a way to meet is told: where, under which name, how many, and settings of its own."""

    def __init__(
        self, backend: str, endpoint: str, run_id: str, min_nodes: int, max_nodes: int, local_addr: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) is below the minimum ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes, self.local_addr = min_nodes, max_nodes, local_addr
        self.config = kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """One of the settings, or a default."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """A setting as a truth."""
        value = self.get(key, default)
        if value is None or isinstance(value, (bool, int)):
            return None if value is None else bool(value)
        text = str(value).lower()
        if text not in _TRUE + _FALSE:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")
        return text in _TRUE

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """A setting as a whole number."""
        value = self.get(key, default)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError as error:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer value."
            ) from error


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Ways to meet by name."""

    def __init__(self) -> None:
        self._creators: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Give a way a name; a name that another way has is refused."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if self._creators.setdefault(backend, creator) is not creator:
            raise ValueError(f"The rendezvous backend '{backend}' cannot be registered twice, for another creator.")

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """Make the handler that parameters name."""
        if params.backend not in self._creators:
            raise ValueError(f"The rendezvous backend '{params.backend}' is not registered.")
        handler = self._creators[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested '{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
"""The registry of this process."""
