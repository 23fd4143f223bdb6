"""What convolutions refuse, and how they read their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.dtype import BOOL, FLOAT, INTEGER, LEGACY_NAMES, int64
from ..._core.geometry.moving_windows import Geometry, Shape, extent, transposed_sizes
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.arguments import scalar
from ..linalg.matmul import element_name

_INT_ALONE = {int}


def integers(function: str, argument: str, value: Any, rank: int | None) -> Shape:
    """A tuple of ints; one int stands for `rank` of them."""
    if type(value) is int and rank is not None:
        return (value,) * rank
    if type(value) is tuple and {*map(type, value)} == _INT_ALONE:
        return value
    if isinstance(value, (tuple, list)):
        entries = tuple(value)
    elif rank is not None:
        entries = (value,) * rank
    else:
        entries = ()
    wrong = not isinstance(value, (tuple, list)) and rank is None
    numbers = scalar.integers(entries)
    if wrong or numbers is None:
        raise TypeError(
            f"{function}() received an invalid combination of arguments: argument '{argument}' must be tuple of ints, "
            f"not {value!r} ({type(value).__name__})"
        )
    return numbers


def for_each_dim(argument: str, values: Shape, rank: int) -> Shape:
    """`values`, of which a single one stands for all dimensions."""
    if len(values) == rank:
        return values
    if len(values) != 1:
        raise RuntimeError(
            f"expected {argument} to be a single integer value or a list of {rank} values to match the convolution "
            f"dimensions, but got {argument}={list(values)}"
        )
    return values * rank


_MOST_PADDING = 2**62 - 1


def check_numbers(geometry: Geometry, output_padding: Shape) -> None:
    """Paddings must not be negative; strides, dilations and groups must be positive."""
    if any(each < 0 for each in output_padding):
        raise RuntimeError(f"negative output_padding is not supported: got {list(output_padding)}")
    for dim, each in enumerate(geometry.padding):
        if each < 0:
            raise RuntimeError(f"negative padding is not supported: got {list(geometry.padding)}")
        if each > _MOST_PADDING:
            raise RuntimeError(
                f"Given padding={each} at dimension {dim} , expected padding to be at most {_MOST_PADDING}: twice as "
                "much is still a number of 64 bits"
            )
    if any(each <= 0 for each in geometry.stride):
        raise RuntimeError(f"non-positive stride is not supported: got {list(geometry.stride)}")
    if geometry.groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported: got {geometry.groups}")
    if any(each <= 0 for each in geometry.dilation):
        raise RuntimeError(
            "non-positive dilation is not supported: dilation should be greater than zero, but got "
            f"{list(geometry.dilation)}"
        )


def check_ranks(input: Shape, weight: Shape) -> None:
    """Input and weight must have as many dimensions."""
    if len(input) != len(weight):
        raise RuntimeError(
            f"Expected {len(weight)}-dimensional input for {len(weight)}-dimensional weight {list(weight)}, but got "
            f"{len(input)}-dimensional input of size {list(input)} instead"
        )


def check_shapes(input: Shape, weight: Shape, bias: Shape | None, geometry: Geometry, transposed: bool) -> None:
    """Input, weight, bias and groups must agree on dimensions and channels."""
    groups = geometry.groups
    check_ranks(input, weight)
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of "
            f"size {list(weight)} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size {list(weight)} instead"
        )
    given = "transposed=1" if transposed else f"groups={groups}"
    channels, outputs = (weight[0], weight[1] * groups) if transposed else (weight[1] * groups, weight[0])
    if input[1] != channels:
        raise RuntimeError(
            f"Given {given}, weight of size {list(weight)}, expected input{list(input)} to have {channels} channels, "
            f"but got {input[1]} channels instead"
        )
    if bias is not None and bias != (outputs,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(weight)}, expected bias to be "
            f"1-dimensional with {outputs} elements, but got bias of size {list(bias)} instead"
        )
    if 0 in weight[2:]:
        raise RuntimeError(f"kernel size should be greater than zero, but got weight of size {list(weight)}")
    if transposed and not outputs and 0 not in input:
        raise RuntimeError(f"non-empty weight tensor expected, but got weight of size {list(weight)}")


def check_sizes(input: Shape, weight: Shape, geometry: Geometry, transposed: bool, output_padding: Shape) -> None:
    """The kernel must fit into the padded input, and the result must not be empty."""
    reach = extent(weight[2:], geometry.dilation)
    if transposed:
        for more, step, gap in zip(output_padding, geometry.stride, geometry.dilation, strict=True):
            if more >= step and more >= gap:
                raise RuntimeError(
                    "output padding must be smaller than either stride or dilation, but got "
                    f"output_padding={list(output_padding)}, stride={list(geometry.stride)}, "
                    f"dilation={list(geometry.dilation)}"
                )
        sizes = transposed_sizes(input[2:], weight[2:], geometry, output_padding)
        if min(sizes) < 1 and input[0] and 0 not in input[2:]:
            raise RuntimeError(
                f"Given input size per channel: ({_times(input[2:])}). Calculated output size per channel: "
                f"({_times(sizes)}). Output size is too small (padding={list(geometry.padding)})"
            )
    else:
        padded = [size + 2 * p for size, p in zip(input[2:], geometry.padding, strict=True)]
        if any(size < r for size, r in zip(padded, reach, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(reach)}). Kernel "
                "size can't be greater than actual input size"
            )
    if 0 in input[2:] and input[0] and input[1]:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input)}")


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def check_dtypes(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
    """All operands must have one dtype, and one that PyTorch has a kernel for."""
    kind = input._kind
    if weight._kind is kind and kind.dtype.category == FLOAT and (bias is None or bias._kind is kind):
        return
    _check_kernel(input, transposed)
    if kind.dtype is not weight._kind.dtype:
        if kind.dtype.category < FLOAT:
            names = LEGACY_NAMES[kind.dtype], LEGACY_NAMES[weight._kind.dtype]
            raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]} (input and weight)")
        raise RuntimeError(
            f"Input type ({kind.legacy_name}) and weight type ({weight._kind.legacy_name}) should be the same"
        )
    if bias is not None and bias._kind.dtype is not kind.dtype:
        raise RuntimeError(
            f"Input type ({kind.legacy_name}) and bias type ({bias._kind.legacy_name}) should be the same"
        )


def _check_kernel(input: Tensor, transposed: bool) -> None:
    """Refuse a dtype that PyTorch has no kernel for."""
    kind = input._kind
    if kind.dtype.category == BOOL or (transposed and kind.dtype.category == INTEGER and kind.dtype is not int64):
        rank = max(input._array.ndim - 2, 2)
        name = (
            f"slow_conv_transpose{rank}d_out_cpu"
            if transposed
            else "slow_conv2d_cpu"
            if rank == 2
            else "compute_columns3d"
        )
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[kind.dtype]}'")


def check_operands(name: str, rank: int, input: Tensor, weight: Any, bias: Any, groups: Any) -> None:
    """Weight and bias must be tensors, `groups` an int, and the input one sample or a batch."""
    kind = input._kind
    if (
        type(weight) in PLAIN_TYPES
        and (bias is None or (type(bias) in PLAIN_TYPES and bias._kind is kind))
        and type(groups) is int
        and input._array.ndim == rank + 2
    ):
        return
    for argument, value in (("weight", weight), ("bias", bias)):
        if not isinstance(value, Tensor) and not (value is None and argument == "bias"):
            raise TypeError(
                f"{name}() received an invalid combination of arguments: argument '{argument}' must be Tensor, not "
                f"{type(value).__name__}"
            )
    if scalar.integer(groups) is None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments: argument 'groups' must be int, not "
            f"{type(groups).__name__}"
        )
    if input._array.ndim not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input._array.shape)}"
        )
    if bias is not None and bias._kind.dtype is not input._kind.dtype:
        _check_kernel(input, name.startswith("conv_transpose"))
        raise RuntimeError(
            f"Input type ({element_name(input)}) and bias type ({element_name(bias)}) should be the same"
        )
