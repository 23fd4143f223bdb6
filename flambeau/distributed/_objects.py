"""Collectives on Python objects.

What comes from another process is read as `load(weights_only=True)` reads a file: containers, numbers, texts, tensors,
and classes that `serialization.add_safe_globals` allows; dataclasses, named tuples and enumerations, too, whose modules
this process has imported. Nothing that a peer sends is executed.
"""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from .._core.device import CPU
from .._core.tensor import Tensor, wrap
from . import _calls, _points
from ._checks import member
from ._world import ProcessGroup, get_global_rank, group_of, is_member, warn_not_in_group

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def _packed(value: Any) -> Tensor:
    from ..serialization import save

    file = io.BytesIO()
    save(value, file)
    return wrap(np.frombuffer(file.getvalue(), np.uint8).copy(), CPU)


def _unpacked(data: Tensor) -> Any:
    from ..serialization import get_unsafe_globals_in_checkpoint, load, safe_globals

    content = data._array.tobytes()
    named = map(_record_class, get_unsafe_globals_in_checkpoint(io.BytesIO(content)))
    with safe_globals([each for each in named if each is not None]):
        return load(io.BytesIO(content), weights_only=True)


def _record_class(name: str) -> Any:
    """The dataclass, named tuple or enumeration of that name, if its module has been imported."""
    module, _, rest = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, outer = module.rpartition(".")
        rest = f"{outer}.{rest}"
    found: Any = sys.modules.get(module)
    for part in rest.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        return None
    is_named_tuple = issubclass(found, tuple) and hasattr(found, "_fields")
    return found if is_named_tuple or issubclass(found, Enum) or dataclasses.is_dataclass(found) else None


def _bytes(count: int) -> Tensor:
    return wrap(np.zeros(count, np.uint8), CPU)


def _numbers(values: list[int]) -> Tensor:
    return wrap(np.array(values, np.int64), CPU)


def _lengths(tensor: Tensor) -> list[int]:
    return [int(each) for each in tensor._array.reshape(-1)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all processes, on all of them.

    Args:
        object_list (list of Anys): a list that receives them, one for each process.
        obj: the object of this process.
        group (ProcessGroup, optional): the processes that take part; None means all.

    Example:
        >>> received = [None, None]
        >>> dist.all_gather_object(received, {"rank": dist.get_rank()})
        >>> received
        [{'rank': 0}, {'rank': 1}]
    """
    if not is_member(group):
        warn_not_in_group("all_gather_object")
        return
    count = group_of(group).size()
    data = _packed(obj)
    sizes = [_numbers([0]) for _ in range(count)]
    _calls.all_gather(sizes, _numbers([data.numel()]), group)
    lengths = [_lengths(size)[0] for size in sizes]
    spaces = [_bytes(max(lengths)) for _ in range(count)]
    _calls.all_gather(spaces, _padded(data, max(lengths)), group)
    for index, (space, length) in enumerate(zip(spaces, lengths, strict=True)):
        object_list[index] = _unpacked(space[:length])


def _padded(data: Tensor, length: int) -> Tensor:
    longer = _bytes(length)
    longer._array[: data.numel()] = data._array
    return longer


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all processes, on one of them.

    Args:
        obj: the object of this process.
        object_gather_list (list of Anys, optional): on the receiver, a list that receives them; None elsewhere.
        dst (int, optional): the rank, among all processes, of the receiver.
        group (ProcessGroup, optional): the processes that take part; None means all.
        group_dst (int, optional): the rank of the receiver in the group, in place of `dst`.

    Example:
        >>> received = [None, None] if dist.get_rank() == 0 else None
        >>> dist.gather_object(f"from {dist.get_rank()}", received, dst=0)
        >>> received
        ['from 0', 'from 1']
    """
    if not is_member(group):
        warn_not_in_group("gather_object")
        return
    found = group_of(group)
    root = member(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    _calls._list_on_root(found, root, object_gather_list, "object_gather_list", "dst")
    data = _packed(obj)
    sizes = [_numbers([0]) for _ in range(found.size())]
    _calls.all_gather(sizes, _numbers([data.numel()]), group)
    lengths = [_lengths(size)[0] for size in sizes]
    here = found.rank() == root
    spaces = [_bytes(max(lengths)) for _ in lengths] if here else None
    _calls.gather(_padded(data, max(lengths)), spaces, group=group, group_dst=root)
    if spaces is not None and object_gather_list is not None:
        for index, (space, length) in enumerate(zip(spaces, lengths, strict=True)):
            object_gather_list[index] = _unpacked(space[:length])


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """The objects of a list on one process, on all of them.

    Args:
        object_list (list of Anys): what the sender sends, and the others receive; of the same length everywhere.
        src (int, optional): the rank, among all processes, of the sender.
        group (ProcessGroup, optional): the processes that take part; None means all.
        device: not used: objects are sent as bytes.
        group_src (int, optional): the rank of the sender in the group, in place of `src`.

    Example:
        >>> objects = ["hello"] if dist.get_rank() == 1 else [None]
        >>> dist.broadcast_object_list(objects, src=1)
        >>> objects
        ['hello']
    """
    if not is_member(group):
        warn_not_in_group("broadcast_object_list")
        return
    found = group_of(group)
    root = member(found, 0 if src is None and group_src is None else src, group_src, "src")

    def pass_on(tensor: Tensor) -> None:
        _calls.broadcast(tensor, group=group, group_src=root)

    if found.rank() == root:
        _give(object_list, pass_on)
    else:
        _take(object_list, pass_on)


def _give(objects: list[Any], pass_on: Callable[[Tensor], Any]) -> None:
    """Pass on a list: first the lengths, then everything in one piece."""
    packed = [_packed(each) for each in objects]
    pass_on(_numbers([each.numel() for each in packed]))
    pass_on(wrap(np.concatenate([each._array for each in packed]) if packed else np.zeros(0, np.uint8), CPU))


def _take(objects: list[Any], fill: Callable[[Tensor], Any]) -> None:
    """Fill a list with what another process gives."""
    sizes = _numbers([0] * len(objects))
    fill(sizes)
    lengths = _lengths(sizes)
    everything = _bytes(sum(lengths))
    fill(everything)
    start = 0
    for index, length in enumerate(lengths):
        objects[index] = _unpacked(everything[start : start + length])
        start += length


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send a list of objects to a process.

    Args:
        object_list (list of Anys): the objects.
        dst (int, optional): the rank, among all processes, of the receiver.
        group (ProcessGroup, optional): the processes that take part; None means all.
        device: not used: objects are sent as bytes.
        group_dst (int, optional): the rank of the receiver in the group, in place of `dst`.
        use_batch (bool): not used. Default: `False`.

    Example:
        >>> objects = ["hello"] if dist.get_rank() == 1 else [None]
        >>> dist.recv_object_list(objects, src=1) if dist.get_rank() == 0 else dist.send_object_list(objects, dst=0)
        1
        >>> objects
        ['hello']
    """
    if not is_member(group):
        warn_not_in_group("send_object_list")
        return
    peer = member(group_of(group), dst, group_dst, "dst")
    _give(object_list, lambda tensor: _points.send(tensor, group=group, group_dst=peer))


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list of objects from a process, or from whoever sends first; the rank of the sender.

    Args:
        object_list (list of Anys): receives the objects.
        src (int, optional): the rank of the sender; None takes whoever sends first.
        group (ProcessGroup, optional): the processes that take part; None means all.
        device: not used: objects are sent as bytes.
        group_src (int, optional): the rank of the sender in the group, in place of `src`.
        use_batch (bool): not used. Default: `False`.

    Returns:
        int: the rank of the sender.

    Example:
        >>> objects = ["hello"] if dist.get_rank() == 1 else [None]
        >>> dist.recv_object_list(objects, src=1) if dist.get_rank() == 0 else dist.send_object_list(objects, dst=0)
        1
        >>> objects
        ['hello']
    """
    if not is_member(group):
        warn_not_in_group("recv_object_list")
        return -1
    found = group_of(group)
    known: list[int | None] = [None if src is None and group_src is None else member(found, src, group_src, "src")]

    def fill(tensor: Tensor) -> None:
        work = _points.irecv(tensor, group=group, group_src=known[0])
        assert work is not None
        work.wait()
        known[0] = work.source_rank() if known[0] is None else known[0]

    _take(object_list, fill)
    assert known[0] is not None
    return get_global_rank(found, known[0])


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """The objects of a list on one process, one for each process: the first entry of the list becomes it.

    Args:
        scatter_object_output_list (list of Anys): a list whose first entry becomes the object of this process.
        scatter_object_input_list (list of Anys, optional): on the sender, an object for each process; None elsewhere.
        src (int, optional): the rank, among all processes, of the sender.
        group (ProcessGroup, optional): the processes that take part; None means all.
        group_src (int, optional): the rank of the sender in the group, in place of `src`.

    Example:
        >>> received = [None]
        >>> dist.scatter_object_list(received, ["first", "second"] if dist.get_rank() == 0 else None, src=0)
        >>> received
        ['first']
    """
    if not is_member(group):
        warn_not_in_group("scatter_object_list")
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    found = group_of(group)
    root = member(found, 0 if src is None and group_src is None else src, group_src, "src")
    objects = _calls._list_on_root(found, root, scatter_object_input_list, "scatter_object_input_list", "src")
    packed = [_packed(each) for each in objects or []]
    sizes = _numbers([each.numel() for each in packed] or [0] * found.size())
    _calls.broadcast(sizes, group=group, group_src=root)
    lengths = _lengths(sizes)
    space = _bytes(max(lengths))
    _calls.scatter(space, [_padded(each, max(lengths)) for each in packed] or None, group=group, group_src=root)
    scatter_object_output_list[0] = _unpacked(space[: lengths[found.rank()]])
