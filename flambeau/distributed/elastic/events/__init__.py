"""Events of a program, under the names of `torch.distributed.elastic.events`: they go to a logger of Python's."""

from __future__ import annotations

import logging
import os
import socket
import traceback
from typing import Any

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent

__all__ = [
    "Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent", "construct_and_record_rdzv_event",
    "get_logging_handler", "record", "record_rdzv_event",
]  # fmt: skip

_HANDLERS: dict[str, logging.Handler] = {"console": logging.StreamHandler(), "null": logging.NullHandler()}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination: "console" or "null"."""
    return _HANDLERS[destination]


def _logger(destination: str) -> logging.Logger:
    found = logging.getLogger(f"torchelastic-events-{destination}")
    if not found.handlers:
        found.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        found.propagate = False
        found.addHandler(get_logging_handler(destination))
    return found


def record(event: Event, destination: str = "null") -> None:
    """Send an event to where events go."""
    _logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Send an event of a meeting to where those go."""
    _logger("null").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str, message: str, node_state: NodeState, name: str = "", hostname: str = "", pid: int | None = None,
    master_endpoint: str = "", local_id: int | None = None, rank: int | None = None,
) -> None:  # fmt: skip
    """Send an event of a meeting, with what is known about this process."""
    known: dict[str, Any] = {"hostname": hostname or socket.getfqdn(), "pid": pid or os.getpid()}
    failed = node_state is NodeState.FAILED
    caller = name or traceback.extract_stack(limit=2)[0].name
    event = RdzvEvent(
        name=caller, run_id=run_id, message=message, node_state=node_state, master_endpoint=master_endpoint,
        rank=rank, local_id=local_id, error_trace=traceback.format_exc() if failed else "", **known,
    )  # fmt: skip
    record_rdzv_event(event)
