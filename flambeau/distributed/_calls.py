"""The collectives that users call."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ParamSpec

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._checks import check_list, check_same_dtype, check_tensor, check_tensors, member
from ._collective import run
from ._engines import Engine
from ._errors import DistBackendError
from ._work import Work
from ._world import ProcessGroup, group_of, is_member, warn_not_in_group
from .reductions import ReduceOp, checked_op

P = ParamSpec("P")

_SUM = ReduceOp.SUM
_COMPLEX_OPS = (ReduceOp.SUM, ReduceOp.AVG)


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex numbers can be combined so.

    Args:
        reduceOp: how values are combined.

    Returns:
        bool: whether they can.

    Example:
        >>> dist.supports_complex(dist.ReduceOp.SUM), dist.supports_complex(dist.ReduceOp.MAX)
        (True, False)
    """
    return ReduceOp.RedOpType(reduceOp) not in (
        ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR
    )  # fmt: skip


def _op_for(tensor: Tensor, op: Any, call: str) -> Any:
    found = checked_op(op)
    if tensor.is_complex() and found not in _COMPLEX_OPS:
        raise ValueError(f"{call} does not support RedOpType.{found.name} on complex tensors")
    if found is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"a mean of {tensor.dtype} is no {tensor.dtype}: the result type can't be cast to it")
    return found


def _renamed(function: Callable[P, Any], name: str) -> Callable[P, Any]:
    """A collective under the newer of its two names."""

    @functools.wraps(function)
    def renamed(*args: P.args, **kwargs: P.kwargs) -> Any:
        return function(*args, **kwargs)

    renamed.__doc__ = (function.__doc__ or "").replace(function.__name__, name)
    renamed.__name__ = renamed.__qualname__ = name
    return renamed


def _outside(group: Any, call: str) -> bool:
    """Whether this process has nothing to do with the group; it is told."""
    if is_member(group):
        return False
    warn_not_in_group(call)
    return True


def all_reduce(tensor: Tensor, op: Any = _SUM, group: Any = None, async_op: bool = False) -> Any:
    """Combine the tensors of all processes, in place on all of them.

    Args:
        tensor (Tensor): the tensor of this process, which becomes the result.
        op: how values are combined, such as `dist.ReduceOp.SUM`. Default: `RedOpType.SUM`.
        group (ProcessGroup, optional): the processes that take part; None means all.
        async_op (bool): whether to return at once; the result's `wait()` then waits until the tensors may be used.
            Default: `False`.

    Returns:
        a `Work` with `async_op=True`, else None.

    Example:
        >>> x = torch.tensor([1.0, 2.0]) * (dist.get_rank() + 1)        # rank 0: [1, 2]; rank 1: [2, 4]
        >>> dist.all_reduce(x)
        >>> x
        tensor([3., 6.])
    """
    check_tensor(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    found, reduction = group_of(group), _op_for(tensor, op, "all_reduce")
    return run(
        "all_reduce",
        found._engine,
        [tensor],
        lambda engine, arrays: engine.all_reduce(arrays[0], reduction),
        1,
        async_op,
    )


@documented_like(all_reduce)
def all_reduce_coalesced(tensors: Any, op: Any = _SUM, group: Any = None, async_op: bool = False) -> Any:
    """`all_reduce` of several tensors.

    Args:
        tensors: the tensors of this process, which become the results.

    Example:
        >>> tensors = [torch.ones(1), torch.ones(2)]
        >>> dist.all_reduce_coalesced(tensors)
        >>> tensors
        [tensor([2.]), tensor([2., 2.])]
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    check_tensors(tensors, "tensor")
    check_same_dtype(tensors)
    if _outside(group, "all_reduce_coalesced"):
        return None
    works = [all_reduce(tensor, op, group, True) for tensor in tensors]
    return _together(works, list(tensors), async_op)


def _together(works: Sequence[Work], result: Any, async_op: bool) -> Any:
    """Several calls as one."""

    def finish() -> None:
        for work in works:
            work._complete()

    whole = Work([each for work in works for each in work._pending], result, finish)
    if async_op:
        return whole
    whole.wait()
    return None


@documented_like(all_reduce)
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = _SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Combine the tensors of all processes, in place on one of them.

    Args:
        tensor (Tensor): the tensor of this process; that of the receiver becomes the result.
        dst (int, optional): the rank, among all processes, of the receiver.
        group_dst (int, optional): the rank of the receiver in the group, in place of `dst`.

    Example:
        >>> x = torch.ones(1) * (dist.get_rank() + 1)
        >>> dist.reduce(x, dst=0)
        >>> x
        tensor([3.])
    """
    check_tensor(tensor, "tensor")
    if _outside(group, "reduce"):
        return None
    found, reduction = group_of(group), _op_for(tensor, op, "reduce")
    root = member(found, dst, group_dst, "dst")
    return run(
        "reduce_to_one",
        found._engine,
        [tensor],
        lambda engine, arrays: engine.reduce(arrays[0], root, reduction),
        1,
        async_op,
    )


@documented_like(all_reduce)
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """The tensor of one process, on all of them.

    Args:
        tensor (Tensor): what the sender sends, and the others receive.
        src (int, optional): the rank, among all processes, of the sender.
        group_src (int, optional): the rank of the sender in the group, in place of `src`.

    Example:
        >>> x = torch.ones(1) * (dist.get_rank() + 5)
        >>> dist.broadcast(x, src=1)
        >>> x
        tensor([6.])
    """
    check_tensor(tensor, "tensor")
    if _outside(group, "broadcast"):
        return None
    found = group_of(group)
    root = member(found, src, group_src, "src")
    return run(
        "broadcast_from_one",
        found._engine,
        [tensor],
        lambda engine, arrays: engine.broadcast(arrays[0], root),
        1,
        async_op,
    )


@documented_like(all_reduce)
def all_gather(tensor_list: Any, tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """The tensors of all processes, on all of them, in a list.

    Args:
        tensor_list: a list of tensors that receive them, one for each process.
        tensor (Tensor): the tensor of this process.

    Example:
        >>> received = [torch.zeros(1) for _ in range(2)]
        >>> dist.all_gather(received, torch.ones(1) * dist.get_rank())
        >>> received
        [tensor([0.]), tensor([1.])]
    """
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_same_dtype(tensor_list, tensor)
    if _outside(group, "all_gather"):
        return None
    found = group_of(group)
    check_list("allgather", tensor_list, found.size(), tensor, "output")
    return run(
        "all_gather",
        found._engine,
        [*tensor_list, tensor],
        lambda engine, arrays: engine.all_gather(arrays[:-1], arrays[-1]),
        len(tensor_list),
        async_op,
        [list(tensor_list)],
    )


@documented_like(all_reduce)
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """The tensors of all processes, on all of them, one behind the other in one tensor.

    Args:
        output_tensor (Tensor): receives them, one behind the other.
        input_tensor (Tensor): the tensor of this process.

    Example:
        >>> received = torch.zeros(2)
        >>> dist.all_gather_into_tensor(received, torch.ones(1) * dist.get_rank())
        >>> received
        tensor([0., 1.])
    """
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    check_same_dtype(output_tensor, input_tensor)
    if _outside(group, "all_gather_into_tensor"):
        return None
    found = group_of(group)
    if output_tensor.numel() != input_tensor.numel() * found.size():
        raise ValueError(
            f"output tensor size must be equal to world_size times input tensor size: {output_tensor.numel()} elements "
            f"are not {found.size()} times {input_tensor.numel()}"
        )

    def start(engine: Engine, arrays: list[Any]) -> Any:
        return engine.all_gather(list(arrays[0].reshape(found.size(), -1)), arrays[1])

    return run("all_gather", found._engine, [output_tensor, input_tensor], start, 1, async_op)


all_gather_single = _renamed(all_gather_into_tensor, "all_gather_single")


@documented_like(all_reduce)
def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any:
    """`all_gather` of several tensors.

    Args:
        output_tensor_lists: for each tensor a list of tensors that receive it, one for each process.
        input_tensor_list: the tensors of this process.

    Example:
        >>> received = [[torch.zeros(1)], [torch.zeros(1)]]
        >>> dist.all_gather_coalesced(received, [torch.ones(1) * dist.get_rank()])
        >>> received
        [[tensor([0.])], [tensor([1.])]]
    """
    check_tensors(input_tensor_list, "input_tensor_list")
    if _outside(group, "all_gather_coalesced"):
        return None
    if len(output_tensor_lists) != len(input_tensor_list) and len(output_tensor_lists) == group_of(group).size():
        output_tensor_lists = list(zip(*output_tensor_lists, strict=True))  # one list for each process
    works = [
        all_gather(list(outs), tensor, group, True)
        for outs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True)
    ]
    return _together(works, output_tensor_lists, async_op)


@documented_like(reduce)
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """The tensors of all processes, on one of them, in a list.

    Args:
        tensor (Tensor): the tensor of this process.
        gather_list (list of Tensors, optional): on the receiver, tensors that receive them, one for each process; None
            elsewhere.

    Example:
        >>> received = [torch.zeros(1) for _ in range(2)] if dist.get_rank() == 0 else None
        >>> dist.gather(torch.ones(1) * dist.get_rank(), received, dst=0)
        >>> received
        [tensor([0.]), tensor([1.])]
    """
    check_tensor(tensor, "tensor")
    check_tensors(gather_list or [], "gather_list")
    check_same_dtype(tensor, gather_list or [])
    if _outside(group, "gather"):
        return None
    found = group_of(group)
    root = member(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    outs = _list_on_root(found, root, gather_list, "gather_list", "dst")
    if outs is not None:
        check_list("gather", outs, found.size(), tensor, "output")

    def start(engine: Engine, arrays: list[Any]) -> Any:
        return engine.gather(None if outs is None else arrays[:-1], arrays[-1], root)

    return run("gather_to_one", found._engine, [*(outs or []), tensor], start, len(outs or []), async_op)


def _list_on_root(group: ProcessGroup, root: int, tensors: Any, name: str, whose: str) -> list[Tensor] | None:
    if group.rank() != root:
        if tensors:
            raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{_ROLES[whose]} ranks.")
        return None
    if not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {_ROLES[whose]} rank.")
    return list(tensors)


_ROLES = {"dst": "destination", "src": "source"}


@documented_like(broadcast)
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """The tensors of a list on one process, one for each process.

    Args:
        tensor (Tensor): receives the tensor of this process.
        scatter_list (list of Tensors, optional): on the sender, a tensor for each process; None elsewhere.

    Example:
        >>> x = torch.zeros(1)
        >>> dist.scatter(x, [torch.ones(1), 2 * torch.ones(1)] if dist.get_rank() == 0 else None, src=0)
        >>> x
        tensor([1.])
    """
    check_tensor(tensor, "tensor")
    check_tensors(scatter_list or [], "scatter_list")
    check_same_dtype(tensor, scatter_list or [])
    if _outside(group, "scatter"):
        return None
    found = group_of(group)
    root = member(found, 0 if src is None and group_src is None else src, group_src, "src")
    inputs = _list_on_root(found, root, scatter_list, "scatter_list", "src")
    if inputs is not None:
        check_list("scatter", inputs, found.size(), tensor, "input")

    def start(engine: Engine, arrays: list[Any]) -> Any:
        return engine.scatter(arrays[0], None if inputs is None else arrays[1:], root)

    return run("scatter_from_one", found._engine, [tensor, *(inputs or [])], start, 1, async_op)


@documented_like(all_reduce)
def reduce_scatter(output: Tensor, input_list: Any, op: Any = _SUM, group: Any = None, async_op: bool = False) -> Any:
    """Combine the n-th tensors of all processes, on the n-th process.

    Args:
        output (Tensor): receives the result of this process.
        input_list: a tensor for each process.

    Example:
        >>> result = torch.zeros(1)
        >>> dist.reduce_scatter(result, [torch.ones(1), 2 * torch.ones(1)])
        >>> result
        tensor([2.])
    """
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_same_dtype(output, input_list)
    if _outside(group, "reduce_scatter"):
        return None
    found, reduction = group_of(group), _op_for(output, op, "reduce_scatter")
    if len(input_list) != found.size():
        raise ValueError(f"one tensor for each of {found.size()} processes is needed, and there are {len(input_list)}")
    own = input_list[found.rank()]
    if own.numel() != output.numel():
        raise ValueError(f"the output has {output.numel()} elements, and the input for this process {own.numel()}")
    return run(
        "reduce_scatter",
        found._engine,
        [output, *input_list],
        lambda engine, arrays: engine.reduce_scatter(arrays[0], arrays[1:], reduction),
        1,
        async_op,
    )


@documented_like(all_reduce)
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = _SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Combine the tensors of all processes, and leave to the n-th process the n-th part.

    Args:
        output (Tensor): receives the part of this process.
        input (Tensor): the tensor that is combined and cut.

    Example:
        >>> result = torch.zeros(1)
        >>> dist.reduce_scatter_tensor(result, torch.tensor([1.0, 2.0]))
        >>> result
        tensor([2.])
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_same_dtype(output, input)
    if _outside(group, "reduce_scatter_tensor"):
        return None
    found, reduction = group_of(group), _op_for(output, op, "reduce_scatter_tensor")
    if input.numel() != output.numel() * found.size():
        raise ValueError(
            f"input tensor must be the same size as output size times world size: {input.numel()} elements are not "
            f"{found.size()} times {output.numel()}"
        )

    def start(engine: Engine, arrays: list[Any]) -> Any:
        return engine.reduce_scatter(arrays[0], list(arrays[1].reshape(found.size(), -1)), reduction)

    return run("reduce_scatter", found._engine, [output, input], start, 1, async_op)


reduce_scatter_single = _renamed(reduce_scatter_tensor, "reduce_scatter_single")


@documented_like(all_reduce)
def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False) -> Any:
    """The n-th process gets the n-th tensor of each.

    Args:
        output_tensor_list: receive the tensors of the processes, in their order.
        input_tensor_list: a tensor for each process.

    Example:
        >>> received = [torch.zeros(1) for _ in range(2)]
        >>> dist.all_to_all(received, [torch.ones(1) * (10 * dist.get_rank() + n) for n in range(2)])
        >>> received
        [tensor([0.]), tensor([10.])]
    """
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_same_dtype(output_tensor_list, input_tensor_list)
    if _outside(group, "all_to_all"):
        return None
    found = group_of(group)
    for name, tensors in (("output", output_tensor_list), ("input", input_tensor_list)):
        if len(tensors) != found.size():
            raise ValueError(f"{len(tensors)} {name} tensors are given, and the group has {found.size()} processes")
    count = len(output_tensor_list)
    return run(
        "all_to_all",
        found._engine,
        [*output_tensor_list, *input_tensor_list],
        lambda engine, arrays: engine.all_to_all(arrays[:count], arrays[count:]),
        count,
        async_op,
    )


@documented_like(all_reduce)
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """The n-th process gets the n-th part of each tensor, along the first dimension.

    Args:
        output (Tensor): receives the parts of the processes, in their order.
        input (Tensor): the tensor that is cut.
        output_split_sizes: how many rows come from each process; None means equal parts.
        input_split_sizes: how many rows go to each process; None means equal parts.

    Example:
        >>> received = torch.zeros(2)
        >>> dist.all_to_all_single(received, torch.tensor([0.0, 1.0]) + 10 * dist.get_rank())
        >>> received
        tensor([ 0., 10.])
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_same_dtype(output, input)
    if _outside(group, "all_to_all_single"):
        return None
    found = group_of(group)
    outs = _bounds(output, output_split_sizes, found.size())
    inputs = _bounds(input, input_split_sizes, found.size())

    def start(engine: Engine, arrays: list[Any]) -> Any:
        return engine.all_to_all([arrays[0][a:b] for a, b in outs], [arrays[1][a:b] for a, b in inputs])

    return run("all_to_all", found._engine, [output, input], start, 1, async_op)


def _bounds(tensor: Tensor, sizes: Any, count: int) -> list[tuple[int, int]]:
    """Where the parts of a flat tensor begin and end."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not sizes:
        if rows % count:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: {rows} rows, {count} processes"
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise RuntimeError(
            f"Split sizes doesn't match total dim 0 size: {list(sizes)} for {rows} rows, {count} processes"
        )
    width = tensor.numel() // rows if rows else 0
    ends = list(itertools.accumulate(sizes))
    return [((end - size) * width, end * width) for size, end in zip(sizes, ends, strict=True)]


@documented_like(all_reduce)
def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Any:
    """Nobody goes on before everybody has come.

    Args:
        device_ids: not used.
        timeout (timedelta, optional): how long to wait before an error.

    Example:
        >>> dist.barrier()
    """
    if _outside(group, "barrier"):
        return None
    pending = group_of(group)._engine.barrier()
    if async_op:
        pending.attend()
        return Work([pending])
    pending.wait(timeout.total_seconds() if timeout else None)
    return None


def monitored_barrier(group: ProcessGroup | None = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """A barrier that tells who did not come: rank 0 raises an error that names the first such process, or all.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.
        timeout: how long to wait.
        wait_all_ranks (bool): whether the error names all processes that did not come. Default: `False`.

    Example:
        >>> dist.monitored_barrier()
    """
    if _outside(group, "monitored_barrier"):
        return
    found = group_of(group)
    limit = (timeout or found._timeout).total_seconds()
    absent = found._engine.absent_members(limit, wait_all_ranks)
    if absent:
        names = ", ".join(str(found._ranks[rank]) for rank in absent)
        raise DistBackendError(
            f"Rank {found._ranks[0]} failed to pass monitoredBarrier in {limit * 1000:.0f} ms: rank {names} is missing"
        )


def is_torchelastic_launched() -> bool:
    """Whether a launcher, `flambeau launch` or `torchrun`, started this process.

    Returns:
        bool: whether one did.

    Example:
        >>> isinstance(dist.is_torchelastic_launched(), bool)
        True
    """
    return "TORCHELASTIC_RUN_ID" in os.environ
