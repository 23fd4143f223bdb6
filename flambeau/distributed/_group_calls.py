"""The calls that libraries make on a group itself: each starts and returns its `Work`.

Most come in two forms, as in PyTorch: with tensors in lists and an object with options, and with plain arguments.
"""

from __future__ import annotations

from typing import Any

from .._core.slots import SLOTS


class GroupCalls:
    """The collectives and messages of a group."""

    def allreduce(self, tensor: Any, op: Any = 0, timeout: Any = None) -> Any:
        """Combine tensors of all processes, on all of them."""
        return self.allreduce_coalesced(_listed(tensor), op)

    def allreduce_coalesced(self, tensors: Any, opts: Any = 0) -> Any:
        """Combine several tensors of all processes, on all of them."""
        return SLOTS.distributed_function("all_reduce_coalesced")(tensors, getattr(opts, "reduceOp", opts), self, True)

    def broadcast(self, tensor: Any, root: Any = 0, timeout: Any = None) -> Any:
        """The tensor of one process, on all of them."""
        return SLOTS.distributed_function("broadcast")(
            _single(tensor), group=self._own(), async_op=True, group_src=_root(root)
        )

    def reduce(self, tensor: Any, root: Any = 0, op: Any = 0, timeout: Any = None) -> Any:
        """Combine the tensors of all processes, on one of them."""
        how = getattr(root, "reduceOp", op)
        return SLOTS.distributed_function("reduce")(
            _single(tensor), op=how, group=self._own(), async_op=True, group_dst=_root(root)
        )

    def allgather(self, output_tensors: Any, input_tensor: Any, timeout: Any = None) -> Any:
        """The tensors of all processes, on all of them."""
        if isinstance(input_tensor, (list, tuple)):
            output_tensors, input_tensor = output_tensors[0], input_tensor[0]
        return SLOTS.distributed_function("all_gather")(output_tensors, input_tensor, self, True)

    def allgather_coalesced(self, output_lists: Any, input_list: Any, opts: Any = None) -> Any:
        """Several tensors of all processes, on all of them: a list for each process."""
        return SLOTS.distributed_function("all_gather_coalesced")(output_lists, input_list, self, True)

    def _allgather_base(self, output: Any, input: Any, options: Any = None) -> Any:
        return SLOTS.distributed_function("all_gather_into_tensor")(output, input, self, True)

    def gather(self, output_tensors: Any, input_tensor: Any, root: Any = 0, timeout: Any = None) -> Any:
        """The tensors of all processes, on one of them."""
        outs = _inner(output_tensors) if isinstance(input_tensor, (list, tuple)) else output_tensors
        return SLOTS.distributed_function("gather")(
            _single(input_tensor), outs or None, None, self._own(), True, _root(root)
        )

    def scatter(self, output_tensor: Any, input_tensors: Any, root: Any = 0, timeout: Any = None) -> Any:
        """The tensors of one process, one for each."""
        given = _inner(input_tensors) if isinstance(output_tensor, (list, tuple)) else input_tensors
        return SLOTS.distributed_function("scatter")(
            _single(output_tensor), given or None, None, self._own(), True, _root(root)
        )

    def reduce_scatter(self, output: Any, input_tensors: Any, op: Any = 0, timeout: Any = None) -> Any:
        """Combine the n-th tensors of all processes, on the n-th process."""
        given = _inner(input_tensors) if isinstance(output, (list, tuple)) else input_tensors
        return SLOTS.distributed_function("reduce_scatter")(
            _single(output), given, getattr(op, "reduceOp", op), self, True
        )

    def _reduce_scatter_base(self, output: Any, input: Any, options: Any = None) -> Any:
        return SLOTS.distributed_function("reduce_scatter_tensor")(
            output, input, getattr(options, "reduceOp", 0), self, True
        )

    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """The n-th process gets the n-th tensor of each."""
        return SLOTS.distributed_function("all_to_all")(output_tensors, input_tensors, self, True)

    def alltoall_base(
        self, output: Any, input: Any, output_split_sizes: Any, input_split_sizes: Any, opts: Any = None
    ) -> Any:
        """The n-th process gets the n-th part of each tensor."""
        sizes = list(output_split_sizes) or None, list(input_split_sizes) or None
        return SLOTS.distributed_function("all_to_all_single")(output, input, *sizes, self, True)

    def send(self, tensors: Any, dstRank: int, tag: int) -> Any:
        """Send a tensor to a process of the group."""
        return SLOTS.distributed_function("isend")(_single(tensors), group=self._own(), tag=tag, group_dst=dstRank)

    def recv(self, tensors: Any, srcRank: int, tag: int) -> Any:
        """Receive a tensor from a process of the group."""
        return SLOTS.distributed_function("irecv")(_single(tensors), group=self._own(), tag=tag, group_src=srcRank)

    def recv_anysource(self, tensors: Any, tag: int) -> Any:
        """Receive a tensor from whoever sends one."""
        return SLOTS.distributed_function("irecv")(_single(tensors), group=self._own(), tag=tag)

    def barrier(self, opts: Any = None) -> Any:
        """Nobody goes on before everybody has come."""
        return SLOTS.distributed_function("barrier")(self._own(), True)

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier that names those who do not come."""
        SLOTS.distributed_function("monitored_barrier")(self._own(), timeout, wait_all_ranks)

    def _own(self) -> Any:
        return self


def _listed(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _single(tensors: Any) -> Any:
    """The tensor that is meant: lists have one, since each process has one device."""
    return tensors[0] if isinstance(tensors, (list, tuple)) else tensors


def _inner(lists: Any) -> Any:
    return lists[0] if lists else None


def _root(options: Any) -> int:
    found: int = getattr(options, "rootRank", options)
    return found
