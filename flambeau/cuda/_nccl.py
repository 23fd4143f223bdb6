"""Collective operations of the CUDA devices of one process, which need no process group.

The tensors go from device to device by copies, which are ordered with the streams of both, so that no library is asked.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

from .._core.process.caller import warn_user
from .._core.tensor import Tensor
from ..autograd.grad_mode import no_grad

SUM = 0


def _ops() -> dict[int, Callable[[Tensor, Tensor], Tensor]]:
    """What NCCL's numbers of reductions mean; averages are sums until the end."""
    from .. import maximum, minimum

    return {0: Tensor.add, 1: Tensor.mul, 2: maximum, 3: minimum, 4: Tensor.add}


def is_available(tensors: Sequence[Tensor]) -> bool:
    """Whether the functions of this module take these tensors.

    Args:
        tensors (Sequence[Tensor]): one tensor for each device.

    Returns:
        bool: whether all are dense, contiguous, on CUDA devices, and no two on the same one.

    Example:
        >>> torch.cuda.nccl.is_available([torch.ones(2, device="cuda")])
        True
    """
    places = [each.device for each in tensors]
    usable = all(each.is_cuda and not each.is_sparse and each.is_contiguous() for each in tensors)
    return usable and len(set(places)) == len(places)


def version() -> tuple[int, ...]:
    """The version of the NCCL library that process groups use.

    Returns:
        tuple[int, ...]: its three numbers.
    """
    library = importlib.import_module("cupy.cuda.nccl")
    number = int(library.get_version())
    return number // 10000, number // 100 % 100, number % 100


def _check_collection(values: Any) -> None:
    if isinstance(values, Tensor) or not isinstance(values, Container):
        raise TypeError(f"Inputs should be a collection of tensors, one for each device, not {type(values).__name__}")


def _check(inputs: Sequence[Tensor], outputs: Sequence[Tensor], more: int = 1, fewer: int = 1) -> None:
    """Refuse tensors that do not go together; an output has `more` times, and an input `fewer` times, as many elements
    as a part."""
    for values in (inputs, outputs):
        _check_collection(values)
    if not inputs or len(inputs) != len(outputs):
        raise RuntimeError(f"inputs and outputs sequences have to be of the same length, but got {len(inputs)} and "
                           f"{len(outputs)}")  # fmt: skip
    _check_each(inputs, outputs, more, fewer)


def _check_each(inputs: Sequence[Tensor], outputs: Sequence[Tensor], more: int = 1, fewer: int = 1) -> None:
    first = inputs[0]
    for values in (inputs, outputs):
        for each in values:
            if not each.is_cuda or each.is_sparse:
                raise RuntimeError(f"input and output elements have to be cuda dense Tensors, not one on {each.device}")
            if not each.is_contiguous():
                raise RuntimeError("input and output elements have to be contiguous: call contiguous() first")
            if each.dtype is not first.dtype:
                raise RuntimeError(f"all inputs and outputs must be of the same Tensor dtype, not {each.dtype} and "
                                   f"{first.dtype}")  # fmt: skip
        places = [each.device for each in values]
        if len(set(places)) < len(places):
            raise RuntimeError(f"inputs must be on unique devices, not {', '.join(map(str, places))}")
    count = first.numel()
    if any(each.numel() != count for each in inputs) or any(each.numel() * fewer != count * more for each in outputs):
        raise RuntimeError(
            "inputs and outputs have to have the same number of elements, or as many times more as there are devices: "
            f"got {[each.numel() for each in inputs]} and {[each.numel() for each in outputs]}"
        )


@contextlib.contextmanager
def _in(streams: Sequence[Any] | None) -> Iterator[None]:
    """A context of a collective operation: nothing is recorded, and each device works in the stream named for it."""
    with no_grad(), contextlib.ExitStack() as entered:
        for each in streams or ():
            if each is not None:
                each.enter()
                entered.callback(each.leave)
        yield


def _reduced(parts: Sequence[Tensor], op: int, place: Any) -> Tensor:
    """The reduction of tensors of several devices on one of them, in the order of the devices."""
    found = _ops().get(op)
    if found is None:
        raise RuntimeError(f"invalid reduction {op}: it is 0 (sum), 1 (product), 2 (largest), 3 (smallest) or 4 (mean)")
    total = parts[0].to(place, copy=True)
    for each in parts[1:]:
        total = found(total, each.to(place))
    return total / len(parts) if op == 4 else total


def all_reduce(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor] | None = None,
    op: int = SUM,
    streams: Sequence[Any] | None = None,
    comms: Any = None,
) -> None:
    """Reduce the tensors of several devices, and give every device the result.

    Args:
        inputs (Sequence[Tensor]): one tensor for each device, of the same size.
        outputs (Sequence[Tensor], optional): where the results go. Default: into `inputs`.
        op (int): 0 for the sum, 1 for the product, 2 for the largest, 3 for the smallest, 4 for the mean. Default: 0.
        streams (Sequence[Stream], optional): the stream of each device that does the work. Default: those in use.
        comms: not used; nothing has to be prepared.

    Example:
        >>> x = torch.ones(2, device="cuda")
        >>> torch.cuda.nccl.all_reduce([x])
        >>> x
        tensor([1., 1.], device='cuda:0')
    """
    outputs = inputs if outputs is None else outputs
    _check(inputs, outputs)
    with _in(streams):
        total = _reduced(inputs, op, inputs[0].device)
        for each in outputs:
            each.copy_(total)


def reduce(
    inputs: Sequence[Tensor],
    output: Tensor | Sequence[Tensor] | None = None,
    root: int = 0,
    op: int = SUM,
    streams: Sequence[Any] | None = None,
    comms: Any = None,
    *,
    outputs: Sequence[Tensor] | None = None,
) -> None:
    """Reduce the tensors of several devices on one of them.

    Args:
        inputs (Sequence[Tensor]): one tensor for each device, of the same size.
        output (Tensor, optional): where the result goes. Default: `inputs[root]`.
        root (int): the number of the device, in the order of `inputs`, that gets the result. Default: 0.
        op (int): 0 for the sum, 1 for the product, 2 for the largest, 3 for the smallest, 4 for the mean. Default: 0.
        streams (Sequence[Stream], optional): the stream of each device that does the work. Default: those in use.
        comms: not used; nothing has to be prepared.
        outputs (Sequence[Tensor], optional): the old form, a list of which the one with the number `root` is used.
    """
    _check_collection(inputs)
    if outputs is not None and output is not None:
        raise ValueError("'output' and 'outputs' can not be both specified: 'outputs' is the old name, for a list")
    if outputs is not None or not (output is None or isinstance(output, Tensor)):
        warn_user("nccl.reduce with an output tensor list is deprecated: pass a single output tensor", FutureWarning)
        given: Any = output if outputs is None else outputs
        output = given[root]
    target: Any = inputs[root] if output is None else output
    _check_each(inputs, [target])
    with _in(streams):
        target.copy_(_reduced(inputs, op, inputs[root].device))


def broadcast(inputs: Sequence[Tensor], root: int = 0, streams: Sequence[Any] | None = None, comms: Any = None) -> None:
    """Copy the tensor of one device into those of all others.

    Args:
        inputs (Sequence[Tensor]): one tensor for each device, of the same size.
        root (int): the number of the tensor that is copied. Default: 0.
        streams (Sequence[Stream], optional): the stream of each device that does the work. Default: those in use.
        comms: not used; nothing has to be prepared.
    """
    _check(inputs, inputs)
    with _in(streams):
        for number, each in enumerate(inputs):
            if number != root:
                each.copy_(inputs[root].view_as(each))


def all_gather(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    streams: Sequence[Any] | None = None,
    comms: Any = None,
) -> None:
    """Give every device the tensors of all, one behind the other.

    Args:
        inputs (Sequence[Tensor]): one tensor for each device, of the same size.
        outputs (Sequence[Tensor]): one tensor for each device, as large as all inputs together.
        streams (Sequence[Stream], optional): the stream of each device that does the work. Default: those in use.
        comms: not used; nothing has to be prepared.
    """
    _check(inputs, outputs, more=len(inputs))
    with _in(streams):
        for each in outputs:
            for part, given in zip(each.view(len(inputs), -1), inputs, strict=True):
                part.copy_(given.view(-1))


def reduce_scatter(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    op: int = SUM,
    streams: Sequence[Any] | None = None,
    comms: Any = None,
) -> None:
    """Reduce the tensors of several devices, and give every device its part of the result.

    Args:
        inputs (Sequence[Tensor]): one tensor for each device, as large as all outputs together.
        outputs (Sequence[Tensor]): one tensor for each device, of the same size.
        op (int): 0 for the sum, 1 for the product, 2 for the largest, 3 for the smallest, 4 for the mean. Default: 0.
        streams (Sequence[Stream], optional): the stream of each device that does the work. Default: those in use.
        comms: not used; nothing has to be prepared.
    """
    _check(inputs, outputs, fewer=len(inputs))
    with _in(streams):
        parts = [each.view(len(inputs), -1) for each in inputs]
        for number, each in enumerate(outputs):
            each.copy_(_reduced([rows[number] for rows in parts], op, each.device).view_as(each))
