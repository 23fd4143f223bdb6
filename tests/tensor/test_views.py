"""Views: which operations share memory, with which strides, and which refuse.

Aliasing is proven by writing through the view and reading the base.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch as pytorch

from tests.support.differential import differential, outcome

View = Callable[[Any, Any], Any]

# From a contiguous tensor of shape (2, 3, 4) to one view of it.
SINGLE_VIEWS: dict[str, View] = {
    "view": lambda T, x: x.view(6, 4),
    "view -1": lambda T, x: x.view(-1),
    "view tuple": lambda T, x: x.view((4, 6)),
    "view ones": lambda T, x: x.view(2, 1, 3, 1, 4),
    "view_as": lambda T, x: x.view_as(T.empty(3, 8)),
    "reshape": lambda T, x: x.reshape(4, 6),
    "reshape_as": lambda T, x: x.reshape_as(T.empty(24)),
    "T.reshape": lambda T, x: T.reshape(x, (8, -1)),
    "transpose": lambda T, x: x.transpose(0, 2),
    "transpose negative": lambda T, x: T.transpose(x, -1, 0),
    "swapaxes": lambda T, x: x.swapaxes(0, 1),
    "swapdims": lambda T, x: x.swapdims(1, 2),
    "permute": lambda T, x: x.permute(2, 0, 1),
    "permute tuple": lambda T, x: T.permute(x, (1, -1, 0)),
    "movedim": lambda T, x: x.movedim(0, -1),
    "movedim several": lambda T, x: T.movedim(x, (0, 1), (2, 0)),
    "moveaxis": lambda T, x: x.moveaxis(2, 0),
    "mT": lambda T, x: x.mT,
    "mH": lambda T, x: x.mH,
    "unsqueeze": lambda T, x: x.unsqueeze(1),
    "unsqueeze last": lambda T, x: T.unsqueeze(x, -1),
    "unsqueeze first": lambda T, x: x.unsqueeze(-4),
    "squeeze nothing": lambda T, x: x.squeeze(),
    "squeeze wide": lambda T, x: x.squeeze(1),
    "narrow": lambda T, x: x.narrow(2, 1, 2),
    "narrow negative": lambda T, x: T.narrow(x, -1, -3, 2),
    "narrow empty": lambda T, x: x.narrow(1, 3, 0),
    "select": lambda T, x: x.select(1, 2),
    "select negative": lambda T, x: T.select(x, -1, -1),
    "diagonal": lambda T, x: x.diagonal(),
    "diagonal offset": lambda T, x: x.diagonal(1, 1, 2),
    "diagonal below": lambda T, x: T.diagonal(x, offset=-1, dim1=-2, dim2=-1),
    "diagonal outside": lambda T, x: x.diagonal(7),
    "expand same": lambda T, x: x.expand(2, 3, 4),
    "expand new": lambda T, x: x.expand(5, 2, 3, 4),
    "expand -1": lambda T, x: x[:, :1].expand(-1, 6, -1),
    "expand_as": lambda T, x: x[:1].expand_as(T.empty(7, 3, 4)),
    "broadcast_to": lambda T, x: T.broadcast_to(x, (2, 2, 3, 4)),
    "unfold": lambda T, x: x.unfold(2, 2, 1),
    "unfold step": lambda T, x: x.unfold(1, 2, 2),
    "unfold whole": lambda T, x: x.unfold(-1, 4, 1),
    "flatten": lambda T, x: x.flatten(),
    "flatten part": lambda T, x: x.flatten(1),
    "flatten range": lambda T, x: T.flatten(x, 0, 1),
    "flatten one": lambda T, x: x.flatten(1, 1),
    "unflatten": lambda T, x: x.unflatten(2, (2, 2)),
    "unflatten -1": lambda T, x: T.unflatten(x, 0, (-1, 1)),
    "ravel": lambda T, x: x.ravel(),
    "as_strided": lambda T, x: x.as_strided((2, 2), (3, 1)),
    "as_strided offset": lambda T, x: T.as_strided(x, (3, 3), (2, 2), 5),
    "as_strided overlap": lambda T, x: x.as_strided((4, 3), (1, 1)),
    "slice": lambda T, x: x[:, 1:],
    "slice step": lambda T, x: x[..., ::2],
    "index": lambda T, x: x[1, 2],
    "None": lambda T, x: x[None, :, None],
    "ellipsis": lambda T, x: x[...],
    "detach": lambda T, x: x.detach(),
    "data": lambda T, x: x.data,
    "view dtype same": lambda T, x: x.view(T.float32),
    "view dtype int": lambda T, x: x.view(T.int32),
    "view dtype wide": lambda T, x: x.view(T.float64),
    "view dtype narrow": lambda T, x: x.view(T.uint8)[..., :2],
    "view_as_complex": lambda T, x: T.view_as_complex(x.view(2, 3, 2, 2)),
    "contiguous": lambda T, x: x.contiguous(),
    "real": lambda T, x: x.real,
    "alias positive": lambda T, x: x.positive(),
    "adjoint": lambda T, x: x.adjoint(),
    "slice_dim": lambda T, x: x[:, 0:2, 1:3],
    "squeeze tuple": lambda T, x: x[:1].squeeze((0, 1)),
    "conj real": lambda T, x: x.conj(),
    "expand zero": lambda T, x: x[:, :, :0].expand(3, 2, 3, 0),
}


@differential
@pytest.mark.parametrize("name", SINGLE_VIEWS)
def test_views_share_memory(T: Any, name: str) -> Any:
    base = T.arange(24.0).view(2, 3, 4)
    view = SINGLE_VIEWS[name](T, base)
    observed = {
        "view": view.clone(),
        "stride": view.stride() if view.numel() else None,
        "offset": view.storage_offset(),
        "contiguous": view.is_contiguous(),
        "same storage": view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr(),
        "is_view": view._is_view(),
        "has base": view._base is base,
        "same object": view is base,
    }
    view.fill_(-1)
    observed["base after writing"] = base
    base.zero_()
    observed["view after writing the base"] = view.clone()
    return observed


@differential
@pytest.mark.parametrize("name", SINGLE_VIEWS)
def test_views_record_their_gradient(T: Any, name: str) -> Any:
    leaf = T.arange(24.0, requires_grad=True)
    view = SINGLE_VIEWS[name](T, leaf.view(2, 3, 4) * 1)
    if not view.requires_grad:
        return "detached", view
    weights = T.arange(1.0, view.numel() + 1).view(view.shape)
    (view * weights).sum().abs().backward()
    return view.dtype, view.grad_fn.name(), leaf.grad


# From a tensor to several views of it.
MULTIPLE_VIEWS: dict[str, View] = {
    "split": lambda T, x: x.split(2, 1),
    "split rest": lambda T, x: T.split(x, 3, dim=2),
    "split sizes": lambda T, x: x.split([1, 0, 3], 2),
    "split_with_sizes": lambda T, x: x.split_with_sizes([1, 2], 1),
    "chunk": lambda T, x: x.chunk(2, 2),
    "chunk uneven": lambda T, x: T.chunk(x, 2, 1),
    "chunk many": lambda T, x: x.chunk(5, 0),
    "tensor_split": lambda T, x: x.tensor_split(3, 2),
    "tensor_split indices": lambda T, x: T.tensor_split(x, (1, 3), dim=2),
    "unbind": lambda T, x: x.unbind(),
    "unbind last": lambda T, x: T.unbind(x, -1),
    "hsplit": lambda T, x: x.hsplit(3),
    "vsplit": lambda T, x: x.vsplit(2),
    "dsplit": lambda T, x: x.dsplit([1]),
    "iteration": lambda T, x: tuple(x),
    "unsafe_split": lambda T, x: x.unsafe_chunk(2, 0),
}


@differential
@pytest.mark.parametrize("name", MULTIPLE_VIEWS)
def test_multiple_views_share_memory(T: Any, name: str) -> Any:
    base = T.arange(24.0).view(2, 3, 4)
    views = MULTIPLE_VIEWS[name](T, base)
    observed = {
        "type": type(views).__name__,
        "views": [view.clone() for view in views],
        "strides": [view.stride() for view in views if view.numel()],
        "offsets": [view.storage_offset() for view in views],
    }
    for number, view in enumerate(views):
        view.fill_(-number)
    return observed | {"base": base}


@differential
@pytest.mark.parametrize("name", MULTIPLE_VIEWS)
def test_multiple_views_record_their_gradient(T: Any, name: str) -> Any:
    leaf = T.arange(24.0).view(2, 3, 4).requires_grad_()
    views = MULTIPLE_VIEWS[name](T, leaf)
    sum((number + 1) * view.sum() for number, view in enumerate(views)).backward()
    return views[0].grad_fn.name(), [view.requires_grad for view in views], leaf.grad


def odd_layouts(T: Any) -> dict[str, Any]:
    """Tensors whose memory is not in reading order."""
    dense = T.arange(24.0).view(2, 3, 4)
    return {
        "contiguous": dense,
        "transposed": dense.transpose(0, 2),
        "permuted": dense.permute(1, 2, 0),
        "inner slice": dense[:, :, 1:3],
        "outer slice": dense[1:],
        "middle slice": dense[:, 1:],
        "stepped": dense[:, :, ::2],
        "expanded": T.arange(3.0).view(1, 3, 1).expand(2, 3, 4),
        "expanded inner": T.arange(6.0).view(2, 3, 1).expand(2, 3, 4),
        "one wide": dense[:, :1],
        "empty": dense[:, :0],
        "diagonal": dense.diagonal(0, 1, 2),
        "zero-dim": dense[0, 0, 0],
    }


TARGETS = [
    (-1,),
    (24,),
    (6, 4),
    (2, 12),
    (4, 6),
    (3, 8),
    (2, 3, 2, 2),
    (12,),
    (2, 3, 1, 4),
    (0,),
    (2, 0),
    (),
    (1, 1),
    (6, 2),
    (2, 4),
]


@differential
@pytest.mark.parametrize("layout", odd_layouts(pytorch))
def test_view_and_reshape_of_odd_layouts(T: Any, layout: str) -> Any:
    source = odd_layouts(T)[layout]
    observed = {}
    for target in TARGETS:
        observed[f"view {target}"] = outcome(lambda t=target: source.view(t))
        observed[f"reshape {target}"] = outcome(lambda t=target: source.reshape(t))
        reshaped = outcome(lambda t=target: source.reshape(t))
        if reshaped[0] == "value" and source.numel():
            observed[f"shares {target}"] = reshaped[1].data_ptr() == source.data_ptr()
    return observed


@differential
@pytest.mark.parametrize("layout", odd_layouts(pytorch))
def test_contiguity(T: Any, layout: str) -> Any:
    source = odd_layouts(T)[layout]
    copy = source.contiguous()
    return (
        source.is_contiguous(),
        copy,
        copy is source,
        copy.stride() if copy.numel() else None,
        source.clone().stride() if source.numel() else None,
        source.clone(memory_format=T.contiguous_format).is_contiguous(),
        (source + 0).stride() if source.numel() else None,
        source.flatten().shape,
        source.storage_offset(),
    )


@differential
def test_stride_method(T: Any) -> Any:
    tensor = T.zeros(2, 3, 4)
    return (
        tensor.stride(),
        type(tensor.stride()).__name__,
        tensor.stride(0),
        tensor.stride(-1),
        tensor.stride(dim=1),
        T.zeros(()).stride(),
        T.zeros(0, 3).stride(),
        T.zeros(3, 0, 2).stride(),
        T.zeros(1, 1).stride(),
        tensor.t().stride() if tensor.dim() == 2 else None,
        outcome(lambda: tensor.stride(3), "Dimension out of range"),
    )


@differential
def test_strides_of_dimensions_of_size_one(T: Any) -> Any:
    base = T.zeros(2, 3)
    return (
        base.unsqueeze(0).stride(),
        base.unsqueeze(1).stride(),
        base.unsqueeze(2).stride(),
        base.t().unsqueeze(1).stride(),
        base[None].stride(),
        base[:, None].stride(),
        base[..., None].stride(),
        base.view(2, 1, 3).stride(),
        base.view(1, 6).stride(),
        base[:1].stride(),
        base.expand(1, 2, 3).stride(),
        base[:, :1].expand(2, 5).stride(),
        T.zeros(1, 3, 1).stride(),
    )


# --- memory formats ---------------------------------------------------------------------------------------------


@differential
def test_channels_last(T: Any) -> Any:
    plain = T.arange(120.0).view(2, 3, 4, 5)
    last = plain.contiguous(memory_format=T.channels_last)
    return {
        "strides": last.stride(),
        "values": last,
        "plain is": plain.is_contiguous(memory_format=T.channels_last),
        "last is": last.is_contiguous(memory_format=T.channels_last),
        "last is plain": last.is_contiguous(),
        "again": last.contiguous(memory_format=T.channels_last) is last,
        "back": last.contiguous().stride(),
        "to": plain.to(memory_format=T.channels_last).stride(),
        "clone": last.clone().stride(),
        "op": (last * 2).stride(),
        "mixed": (last + plain).stride(),
        "like": T.empty_like(last).stride(),
        "one channel": T.zeros(2, 1, 4, 5).is_contiguous(memory_format=T.channels_last),
        "one pixel": T.zeros(2, 3, 1, 1).is_contiguous(memory_format=T.channels_last),
        "permuted": T.zeros(2, 4, 5, 3).permute(0, 3, 1, 2).is_contiguous(memory_format=T.channels_last),
        "double": last.double().stride(),
        "3d": T.zeros(2, 3, 4, 5, 6).contiguous(memory_format=T.channels_last_3d).stride(),
        "wrong rank": outcome(lambda: T.zeros(2, 3).contiguous(memory_format=T.channels_last), "rank 4"),
        "wrong question": T.zeros(2, 3).is_contiguous(memory_format=T.channels_last),
    }


@differential
def test_preserve_format_of_results(T: Any) -> Any:
    transposed = T.arange(6.0).view(2, 3).t()
    permuted = T.arange(24.0).view(2, 3, 4).permute(2, 0, 1)
    return {
        "unary": transposed.exp().stride(),
        "binary": (transposed + transposed).stride(),
        "scalar": (permuted * 2).stride(),
        "clone": permuted.clone().stride(),
        "to": permuted.to(T.float64).stride(),
        "sum": permuted.sum(0).stride(),
        "comparison": (permuted > 3).stride(),
        "where": T.where(permuted > 3, permuted, permuted).stride(),
        "broadcast": (permuted + T.ones(3)).stride(),
        "sliced": (T.arange(24.0).view(4, 6)[:, ::2] + 1).stride(),
        "mixed": (T.ones(3, 2) + transposed).stride(),
        "mixed first": (transposed + T.ones(3, 2)).stride(),
        "clone sliced": T.arange(24.0).view(4, 6)[:, ::2].clone().stride(),
    }


# --- particular views -------------------------------------------------------------------------------------------


@differential
def test_T_and_H(T: Any) -> Any:
    matrix = T.arange(6.0).view(2, 3)
    compound = T.tensor([[1 + 2j, 3 - 1j]])
    return (
        matrix.T,
        matrix.t(),
        T.t(matrix),
        matrix.H,
        compound.H.resolve_conj(),
        compound.mH.resolve_conj(),
        T.arange(3).t(),
        T.tensor(1.0).t(),
        T.arange(3).T,
        outcome(lambda: T.zeros(1, 2, 3).t(), "t() expects a tensor with <= 2 dimensions"),
        outcome(lambda: T.zeros(3).mT, "only supported on matrices or batches of matrices"),
        outcome(lambda: T.zeros(1, 2, 3).H, "only supported on matrices"),
        T.zeros(2, 3, 4).T.shape,
    )


@differential
@pytest.mark.parametrize("dim", [None, 0, 1, 2, -1, -4, (0, 2), (1, 3), ()])
def test_squeeze(T: Any, dim: Any) -> Any:
    tensor = T.arange(6.0).view(1, 2, 1, 3)
    return tensor.squeeze() if dim is None else tensor.squeeze(dim)


@differential
def test_squeeze_of_zero_dim(T: Any) -> Any:
    scalar = T.tensor(1.0)
    return (
        scalar.squeeze(),
        scalar.squeeze(0),
        scalar.squeeze(-1),
        scalar.unsqueeze(0),
        outcome(lambda: scalar.squeeze(1)),
    )


@differential
@pytest.mark.parametrize("source", ["uint8", "int16", "float16", "float32", "int64", "float64", "complex64"])
@pytest.mark.parametrize(
    "target", ["bool", "uint8", "int16", "bfloat16", "int32", "float64", "complex64", "complex128"]
)
def test_view_as_another_dtype(T: Any, source: str, target: str) -> Any:
    tensor = T.zeros(2, 16, dtype=getattr(T, source))
    tensor[0, 0] = 1

    def look() -> Any:
        view = tensor.view(getattr(T, target))
        tensor[1].fill_(1)
        return view

    return outcome(look)


@differential
def test_view_dtype_refuses(T: Any) -> Any:
    return {
        "odd": outcome(lambda: T.zeros(3, dtype=T.float32).view(T.float64), "must be divisible by"),
        "zero-dim": outcome(lambda: T.zeros((), dtype=T.float32).view(T.float64), "self.dim() cannot be 0"),
        "strided": outcome(lambda: T.zeros(4, 4).t().view(T.float64), "self.stride(-1) must be 1"),
        "zero-dim same size": T.zeros(()).view(T.int32),
        "offset": outcome(lambda: T.zeros(5)[1:].view(T.float64)),
    }


@differential
def test_view_as_real_and_complex(T: Any) -> Any:
    compound = T.tensor([1 + 2j, 3 + 4j])
    real = T.view_as_real(compound)
    real[0, 0] = 9
    compound.real[1] = 7
    compound.imag[1] = -7
    return {
        "written": compound,
        "real": real,
        "part": compound.real,
        "imag": compound.imag,
        "complex": T.view_as_complex(T.arange(4.0).view(2, 2)),
        "not complex": outcome(lambda: T.view_as_real(T.ones(2)), "only supported for complex tensors"),
        "imag of real": outcome(lambda: T.ones(2).imag, "imag is not implemented for tensors with non-complex dtypes"),
        "last dim": outcome(lambda: T.view_as_complex(T.ones(3)), "size 2"),
        "stride": outcome(lambda: T.view_as_complex(T.ones(2, 3).t()), ""),
    }


@differential
def test_expanded_memory_cannot_be_written_twice(T: Any) -> Any:
    expanded = T.zeros(3, 1).expand(3, 4)
    phrase = "more than one element of the written-to tensor refers to a single memory location"
    return (
        outcome(lambda: expanded.add_(1), phrase),
        outcome(lambda: expanded.mul_(T.ones(3, 4)), phrase),
        outcome(lambda: T.add(T.ones(3, 4), 1, out=expanded), phrase),
    )


@differential
def test_views_of_views_have_one_base(T: Any) -> Any:
    base = T.arange(6.0)
    view = base.view(2, 3)[1].unsqueeze(0)
    return view._base is base, view.detach()._base is None, base._base is None, view.clone()._base is None


IMPOSSIBLE: dict[str, tuple[View, str]] = {
    "view numel": (lambda T, x: x.view(5, 5), "shape '[5, 5]' is invalid for input of size 24"),
    "view numel -1": (lambda T, x: x.view(7, -1), "shape '[7, -1]' is invalid for input of size 24"),
    "view strides": (
        lambda T, x: x.transpose(0, 1).view(-1),
        "view size is not compatible with input tensor's size and stride",
    ),
    "view strides advice": (lambda T, x: x.transpose(0, 1).view(-1), "Use .reshape(...) instead"),
    "view two -1": (lambda T, x: x.view(-1, -1), "only one dimension can be inferred"),
    "view -2": (lambda T, x: x.view(-2, 12), "invalid shape dimension -2"),
    "view float": (lambda T, x: x.view(2.0, 12), ""),
    "view nothing": (lambda T, x: x.view(), ""),
    "view zero -1": (lambda T, x: x[:0].view(-1, 0), "cannot reshape tensor of 0 elements into shape [-1, 0]"),
    "reshape": (lambda T, x: x.reshape(5), "shape '[5]' is invalid for input of size 24"),
    "reshape two -1": (lambda T, x: x.reshape(-1, -1), "only one dimension can be inferred"),
    "expand": (lambda T, x: x.expand(2, 5, 4), "The expanded size of the tensor (5) must match the existing size (3)"),
    "expand few": (lambda T, x: x.expand(4), "must be greater or equal to the number of dimensions in the tensor (3)"),
    "expand leading -1": (lambda T, x: x.expand(-1, 2, 3, 4), "isn't allowed in a leading, non-existing dimension 0"),
    "transpose": (
        lambda T, x: x.transpose(0, 3),
        "Dimension out of range (expected to be in range of [-3, 2], but got 3)",
    ),
    "permute few": (lambda T, x: x.permute(0, 1), "number of dimensions in the tensor input does not match"),
    "permute twice": (lambda T, x: x.permute(0, 1, 1), ""),
    "permute far": (lambda T, x: x.permute(0, 1, 5), "Dimension out of range"),
    "unsqueeze": (
        lambda T, x: x.unsqueeze(4),
        "Dimension out of range (expected to be in range of [-4, 3], but got 4)",
    ),
    "squeeze": (lambda T, x: x.squeeze(3), "Dimension out of range"),
    "squeeze twice": (lambda T, x: x.squeeze((0, 0)), "appears multiple times"),
    "narrow length": (lambda T, x: x.narrow(0, 1, 2), "exceeds dimension size (2)"),
    "narrow negative": (lambda T, x: x.narrow(0, 0, -1), "length must be non-negative"),
    "narrow start": (lambda T, x: x.narrow(0, 5, 1), "start out of range"),
    "select": (lambda T, x: x.select(0, 2), "index 2 out of range for tensor of size [2, 3, 4] at dimension 0"),
    "select dim": (lambda T, x: x.select(3, 0), "Dimension out of range"),
    "select scalar": (lambda T, x: x[0, 0, 0].select(0, 0), "cannot be applied to a 0-dim tensor"),
    "unfold": (lambda T, x: x.unfold(0, 3, 1), "maximum size for tensor at dimension 0 is 2 but size is 3"),
    "unfold step": (lambda T, x: x.unfold(0, 1, 0), "step is 0 but must be > 0"),
    "unflatten": (lambda T, x: x.unflatten(2, (3, 2)), "don't multiply up to the size of dim 2 (4)"),
    "unflatten empty": (lambda T, x: x.unflatten(2, ()), "must be non-empty"),
    "flatten order": (lambda T, x: x.flatten(2, 1), "start_dim cannot come after end_dim"),
    "diagonal": (lambda T, x: x.diagonal(0, 1, 1), "diagonal dimensions cannot be identical 1, 1"),
    "diagonal far": (lambda T, x: x.diagonal(0, 0, 5), "Dimension out of range"),
    "split zero": (lambda T, x: x.split(0), "split_size can only be 0 if dimension size is 0"),
    "split negative": (lambda T, x: x.split(-1), "non-negative"),
    "split sum": (lambda T, x: x.split([1, 1], 2), "split_with_sizes expects split_sizes to sum exactly to 4"),
    "chunk zero": (lambda T, x: x.chunk(0), "chunk expects `chunks` to be greater than 0"),
    "chunk scalar": (lambda T, x: x[0, 0, 0].chunk(2), "chunk expects at least a 1-dimensional tensor"),
    "tensor_split": (lambda T, x: x.tensor_split(0), "number of sections must be larger than 0"),
    "unbind scalar": (lambda T, x: x[0, 0, 0].unbind(), "Dimension specified as 0 but tensor has no dimensions"),
    "hsplit": (lambda T, x: x.hsplit(2), "torch.hsplit attempted to split along dimension 1"),
    "as_strided length": (lambda T, x: x.as_strided((2, 2), (1,)), "mismatch in length of strides and shape"),
    "as_strided far": (lambda T, x: x.as_strided((30,), (1,)), "out of bounds for storage of size 96"),
    "as_strided negative": (lambda T, x: x.as_strided((2,), (-1,)), "as_strided: Negative strides are not supported"),
    "as_strided offset": (lambda T, x: x.as_strided((2,), (1,), -1), "invalid storage offset -1"),
    "movedim lengths": (lambda T, x: x.movedim((0, 1), (0,)), "should contain the same number of dims"),
    "movedim twice": (lambda T, x: x.movedim((0, 0), (1, 2)), "repeated dim"),
}


@differential
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_views(T: Any, name: str) -> Any:
    action, phrase = IMPOSSIBLE[name]
    tensor = T.arange(24.0).view(2, 3, 4)
    return outcome(lambda: action(T, tensor), phrase)


@differential
def test_broadcast_tensors_gives_back_tensors_that_have_the_shape(T: Any) -> Any:
    x, wide = T.ones(3), T.ones(2, 3)
    return [
        [each is given for each, given in zip(T.broadcast_tensors(*tensors), tensors, strict=True)]
        for tensors in ((x,), (x, T.ones(3)), (x, wide), (wide, T.tensor(1.0)))
    ]
