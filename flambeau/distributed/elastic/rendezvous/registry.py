"""The handler that parameters name, under the names of `torch.distributed.elastic.rendezvous.registry`."""

from __future__ import annotations

from .api import RendezvousHandler, RendezvousParameters, rendezvous_handler_registry
from .dynamic_rendezvous import create_c10d_handler
from .static_tcp_rendezvous import create_rdzv_handler

__all__ = ["get_rendezvous_handler"]

rendezvous_handler_registry.register("static", create_rdzv_handler)
rendezvous_handler_registry.register("c10d", create_c10d_handler)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Make the handler of a way that has been registered."""
    return rendezvous_handler_registry.create_handler(params)
