"""Calls in other processes, under the names of `torch.distributed.rpc`: they are refused."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "it is not planned: a peer could run any function here. Use collectives, or send and recv",
        functions="init_rpc shutdown rpc_sync rpc_async remote get_worker_info",
        classes="RRef WorkerInfo BackendType RpcBackendOptions TensorPipeRpcBackendOptions",
    )
    .parts()
)


def is_available() -> bool:
    """Whether processes can call each other: not here."""
    return False
