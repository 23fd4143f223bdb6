"""Meeting where everybody knows beforehand how many come and who is who."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ...stores import PrefixStore
from ...tcp_store import TCPStore
from .api import RendezvousHandler, RendezvousInfo, RendezvousParameters, RendezvousStoreInfo

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]


class StaticTCPRendezvous(RendezvousHandler):
    """Agent 0 has the store, and the others come to it."""

    def __init__(
        self, master_addr: str, master_port: int, rank: int, world_size: int, run_id: str, timeout: int
    ) -> None:
        self.master_addr, self.master_port = master_addr, master_port
        self.rank, self.world_size, self.run_id = rank, world_size, run_id
        self.timeout = timedelta(seconds=timeout)
        self._store: Any = None

    def get_backend(self) -> str:
        """The name of the kind of rendezvous."""
        return "static"

    @property
    def use_agent_store(self) -> bool:
        """Workers may use the store of the meeting."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """Open the store, or come to it."""
        if self._store is None:
            self._store = TCPStore(self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout)
        place = RendezvousStoreInfo(self.master_addr, int(self._store.port))
        return RendezvousInfo(PrefixStore(self.run_id, self._store), self.rank, self.world_size, place)

    def is_closed(self) -> bool:
        """Never: who comes is known."""
        return False

    def set_closed(self) -> None:
        """There is nothing to end."""

    def num_nodes_waiting(self) -> int:
        """None: who comes is known."""
        return 0

    def get_run_id(self) -> str:
        """The name of the meeting."""
        return self.run_id

    def shutdown(self) -> bool:
        """Leave the store that the processes share."""
        self._store = None
        return True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler for parameters with `rank`, at "host:port"."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters.Try add --node-rank to the cmd request")
    endpoint = params.endpoint.strip()
    if not endpoint:
        raise ValueError("endpoint is absent in RendezvousParametersTry add --master-port and --master-addr to the cmd request")  # noqa: E501  # fmt: skip
    host, _, port = endpoint.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"master_port is absent in endpoint: {endpoint}. Try add --master-port to the cmd request")
    timeout = params.get_as_int("timeout", 600)
    return StaticTCPRendezvous(
        host, int(port), int(params.config["rank"]), params.max_nodes, params.run_id, int(timeout or 600)
    )
