"""Messages from one process to another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._checks import check_tensor, member
from ._collective import run
from ._work import Work
from ._world import ProcessGroup, get_global_rank, group_of, is_member, warn_not_in_group

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]

_WRITTEN_BY_RECEIVE = 1


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to a process.

    Args:
        tensor (Tensor): the message.
        dst (int, optional): the rank, among all processes, of the receiver.
        group (ProcessGroup, optional): the processes that take part; None means all.
        tag (int): a number by which messages are told apart. Default: `0`.
        group_dst (int, optional): the rank of the receiver in the group, in place of `dst`.

    Returns:
        `wait()` until the tensor may be changed.

    Example:
        >>> received = torch.zeros(1)
        >>> work = dist.irecv(received, 1) if dist.get_rank() == 0 else dist.isend(torch.ones(1), 0)
        >>> _ = work.wait()
        >>> received
        tensor([1.])
    """
    check_tensor(tensor, "tensor")
    if not is_member(group):
        warn_not_in_group("isend")
        return None
    found = group_of(group)
    peer = member(found, dst, group_dst, "dst")
    if peer == found.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    work: Work = run(
        "send", found._engine, [tensor], lambda engine, arrays: engine.send(arrays[0], peer, tag), 0, True, [tensor]
    )
    return work


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor from a process, or from whoever sends first.

    Args:
        tensor (Tensor): receives the message.
        src (int, optional): the rank of the sender; None takes whoever sends first.
        group (ProcessGroup, optional): the processes that take part; None means all.
        tag (int): a number by which messages are told apart. Default: `0`.
        group_src (int, optional): the rank of the sender in the group, in place of `src`.

    Returns:
        `wait()` until the tensor may be used.

    Example:
        >>> received = torch.zeros(1)
        >>> work = dist.irecv(received, 1) if dist.get_rank() == 0 else dist.isend(torch.ones(1), 0)
        >>> _ = work.wait()
        >>> received
        tensor([1.])
    """
    check_tensor(tensor, "tensor")
    if not is_member(group):
        warn_not_in_group("irecv")
        return None
    found = group_of(group)
    peer = None if src is None and group_src is None else member(found, src, group_src, "src")
    if peer == found.rank():
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    work: Work = run(
        "receive",
        found._engine,
        [tensor],
        lambda engine, arrays: engine.receive(arrays[0], peer, tag),
        _WRITTEN_BY_RECEIVE,
        True,
    )
    return work


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a process.

    Args:
        tensor (Tensor): the message.
        dst (int, optional): the rank, among all processes, of the receiver.
        group (ProcessGroup, optional): the processes that take part; None means all.
        tag (int): a number by which messages are told apart. Default: `0`.
        group_dst (int, optional): the rank of the receiver in the group, in place of `dst`.

    Example:
        >>> received = torch.zeros(1)
        >>> dist.recv(received, src=1) if dist.get_rank() == 0 else dist.send(torch.ones(1), dst=0)
        1
        >>> received
        tensor([1.])
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


@documented_like(irecv)
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from a process, or from whoever sends first; the rank of the sender, -1 outside of the group.

    Returns:
        int: the rank of the sender.

    Example:
        >>> received = torch.zeros(1)
        >>> dist.recv(received, src=1) if dist.get_rank() == 0 else dist.send(torch.ones(1), dst=0)
        1
        >>> received
        tensor([1.])
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return get_global_rank(group_of(group), work.source_rank()) if src is None else src


class P2POp:
    """One of several messages that are started together: `op` is `isend` or `irecv`.

    Args:
        op (Callable): `dist.isend` or `dist.irecv`.
        tensor (Tensor): the message, or what receives it.
        peer (int, optional): the rank of the other process.
        group (ProcessGroup, optional): the processes that take part; None means all.
        tag (int): a number by which messages are told apart. Default: `0`.
        group_peer (int, optional): the rank of the other process in the group, in place of `peer`.

    Example:
        >>> dist.P2POp(dist.isend, torch.ones(1), 1 - dist.get_rank()).peer
        1
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or irecv")
        check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = group
        self.tag = tag
        found = group_of(group)
        self.group_peer = member(found, peer, group_peer, "peer")
        self.peer = get_global_rank(found, self.group_peer)

    def __repr__(self) -> str:
        name = getattr(self.op, "__name__", "?")
        return f"P2POp({name}, peer={self.peer}, tag={self.tag}, shape={tuple(self.tensor.shape)})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several messages.

    Args:
        p2p_op_list (list of P2POps): the messages.

    Returns:
        list of Works: one for each message that this process takes part in.

    Example:
        >>> other, received = 1 - dist.get_rank(), torch.zeros(1)
        >>> send = dist.P2POp(dist.isend, torch.ones(1) * dist.get_rank(), other)
        >>> receive = dist.P2POp(dist.irecv, received, other)
        >>> for work in dist.batch_isend_irecv([send, receive]):
        ...     _ = work.wait()
        >>> received
        tensor([1.])
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    started = (each.op(each.tensor, group=each.group, tag=each.tag, **_peer(each)) for each in p2p_op_list)
    return [work for work in started if work is not None]


def _peer(each: P2POp) -> dict[str, int]:
    return {"group_dst" if each.op is isend else "group_src": each.group_peer}


class _CoalescingManager:
    """The calls that were started inside of a `_coalescing_manager`."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add a call that was started."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all of them."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Several calls as one. Here each starts at once: what is on its way at the same time shares the connections."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()
