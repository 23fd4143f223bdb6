"""The handler that parameters name, under the names of `torch.distributed.elastic.rendezvous.registry`."""

from __future__ import annotations

from .api import RendezvousHandler, RendezvousParameters, rendezvous_handler_registry

__all__ = ["get_rendezvous_handler"]


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Make the handler of a way that has been registered."""
    return rendezvous_handler_registry.create_handler(params)
