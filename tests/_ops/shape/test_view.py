"""Views: values, strides, sharing of memory, gradients, and in-place changes seen through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome


def _numbers(T: Any, *shape: int, dtype: str = "float64") -> Any:
    count = 1
    for size in shape:
        count *= size
    values = [((7 * number) % 11 - 5) / 4 for number in range(count)]
    return T.tensor(values, dtype=getattr(T, dtype)).reshape(shape)


VIEWS: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "view": ((4, 6), lambda T, x: x.view(3, -1)),
    "view_of_transposed_outer": ((2, 3, 4), lambda T, x: x.transpose(0, 1).view(3, 2, 2, 2)),
    "reshape_alias": ((2, 3, 4), lambda T, x: x.transpose(0, 1).reshape(3, 2, 2, 2)),
    "reshape_copy": ((4, 6), lambda T, x: x.t().reshape(24)),
    "reshape_keyword": ((4, 6), lambda T, x: T.reshape(x, shape=(6, 4))),
    "flatten": ((2, 3, 4), lambda T, x: x.flatten(1)),
    "unflatten": ((2, 12), lambda T, x: x.unflatten(1, (3, -1))),
    "ravel": ((4, 6), lambda T, x: x.t().ravel()),
    "transpose": ((2, 3, 4), lambda T, x: x.transpose(0, -1)),
    "swapaxes": ((2, 3, 4), lambda T, x: T.swapaxes(x, axis0=0, axis1=1)),
    "swapdims": ((2, 3, 4), lambda T, x: T.swapdims(x, 0, 1)),
    "t": ((4, 6), lambda T, x: x.t()),
    "T": ((4, 6), lambda T, x: x.T),
    "mT": ((2, 3, 4), lambda T, x: x.mT),
    "H": ((4, 6), lambda T, x: x.H),
    "adjoint": ((2, 3, 4), lambda T, x: x.adjoint()),
    "permute": ((2, 3, 4), lambda T, x: x.permute(2, 0, 1)),
    "permute_keyword": ((2, 3, 4), lambda T, x: T.permute(x, dims=(1, 2, 0))),
    "movedim": ((2, 3, 4), lambda T, x: x.movedim((0, 1), (2, 0))),
    "moveaxis": ((2, 3, 4), lambda T, x: T.moveaxis(x, 0, -1)),
    "expand": ((2, 1, 3), lambda T, x: x.expand(4, -1, 5, 3)),
    "expand_with_new_ones": ((2, 3), lambda T, x: x.expand(1, 4, 2, 3)),
    "broadcast_to": ((2, 1), lambda T, x: x.broadcast_to(3, 2, 2)),
    "squeeze": ((2, 1, 3, 1), lambda T, x: x.squeeze()),
    "squeeze_dim": ((2, 1, 3, 1), lambda T, x: x.squeeze(1)),
    "squeeze_dims": ((2, 1, 3, 1), lambda T, x: x.squeeze((0, 3))),
    "unsqueeze": ((2, 3), lambda T, x: x.t().unsqueeze(1)),
    "narrow": ((4, 6), lambda T, x: x.narrow(1, -4, 3)),
    "select": ((4, 6), lambda T, x: x.select(1, -2)),
    "unfold_overlapping": ((4, 6), lambda T, x: x.unfold(1, 3, 1)),
    "diagonal": ((3, 4, 5), lambda T, x: x.diagonal(1, 2, 0)),
    "as_strided": ((4, 6), lambda T, x: x.as_strided((3, 2), (5, 2), 3)),
    "as_strided_overlapping": ((4, 6), lambda T, x: x.as_strided((3, 4), (1, 1))),
    "as_strided_of_expanded": ((4, 1), lambda T, x: x.expand(4, 3).as_strided((2, 2), (1, 1))),
    "as_strided_of_view": ((4, 6), lambda T, x: x[1:, 2:].as_strided((2, 3), (6, 1), 0)),
    "split": ((5, 3), lambda T, x: x.split(2)),
    "split_sizes": ((5, 3), lambda T, x: x.split([1, 0, 4])),
    "chunk": ((7, 2), lambda T, x: x.chunk(3)),
    "tensor_split": ((7, 2), lambda T, x: x.tensor_split((2, 1, -1))),
    "hsplit": ((3, 4), lambda T, x: x.hsplit(2)),
    "unbind": ((3, 4), lambda T, x: x.unbind(1)),
    "unsafe_split": ((5, 3), lambda T, x: T.unsafe_split(x, 2, 1)),
    "atleast_3d": ((4,), lambda T, x: T.atleast_3d(x)),
    "meshgrid": ((3,), lambda T, x: T.meshgrid(x, x[:2], indexing="xy")),
    "broadcast_tensors": ((3, 1), lambda T, x: T.broadcast_tensors(x, x.t())),
    "permute_copy": ((2, 3, 4), lambda T, x: T.permute_copy(x, (2, 0, 1))),
    "unbind_copy": ((3, 4), lambda T, x: T.unbind_copy(x, 1)),
    "view_copy": ((3, 4), lambda T, x: T.view_copy(x, (2, 6))),
    "narrow_copy": ((3, 4), lambda T, x: x.narrow_copy(1, 1, 2)),
    "as_strided_copy": ((3, 4), lambda T, x: T.as_strided_copy(x, (2, 2), (4, 1), 1)),
}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", VIEWS)
@differential
def test_values_and_two_derivatives(T: Any, name: str) -> Any:
    shape, view = VIEWS[name]
    x = _numbers(T, *shape).requires_grad_()
    results = _listed(view(T, x))
    weights = [(_numbers(T, *each.shape) + 2).requires_grad_() for each in results]
    (grad,) = T.autograd.grad(results, [x], weights, create_graph=True)
    again = T.autograd.grad([grad], weights, [_numbers(T, *shape)])
    geometry = [(each.storage_offset() if each.numel() else "any", each._is_view()) for each in results]
    return results, geometry, grad.detach(), again


@pytest.mark.parametrize("name", ["t", "transpose", "permute", "narrow", "select", "diagonal", "expand", "as_strided"])
@differential
def test_a_view_shares_memory_and_version(T: Any, name: str) -> Any:
    shape, view = VIEWS[name]
    x = _numbers(T, *shape)
    result = view(T, x)
    x.fill_(3.0)
    shared = result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    return result, shared, result._version, result._base is x


IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda T, y: y[1:3].mul_(3),
    "select": lambda T, y: y[0].pow_(2),
    "transpose": lambda T, y: y.t().mul_(y.t().detach() + 1),
    "view_of_view": lambda T, y: y[1:].t()[2].exp_(),
    "view_of_view_of_view": lambda T, y: y.view(2, 2, 6)[1].narrow(1, 1, 3).t().sin_(),
    "diagonal": lambda T, y: y.diagonal(1).mul_(5),
    "strided": lambda T, y: y.as_strided((2, 2), (7, 3), 2).mul_(4),
    "twice": lambda T, y: (y[0].mul_(2), y[:, 0].pow_(3)),
    "copy": lambda T, y: y[1].copy_(y[0].detach() * 2),
    "zero": lambda T, y: y[:, 2:4].zero_(),
    "permuted_copy": lambda T, y: y.permute(1, 0)[1:3].copy_(_numbers(T, 2, 4)),
}


@pytest.mark.parametrize("name", IN_PLACE)
@differential
def test_gradients_of_in_place_changes_of_views(T: Any, name: str) -> Any:
    x = _numbers(T, 4, 6).requires_grad_()
    y = x * 2
    other = y[2:]  # made before the change: it must see the new history
    IN_PLACE[name](T, y)
    total = (y * _numbers(T, 4, 6)).sum() + (other**2).sum()
    (grad,) = T.autograd.grad(total, x, create_graph=True)
    (second,) = T.autograd.grad((grad**2).sum() + grad.sum(), x)
    return y.grad_fn.name(), other.grad_fn.name(), y, grad.detach(), second.detach()


@differential
def test_a_change_of_the_base_reaches_the_gradient_of_its_view(T: Any) -> Any:
    x = _numbers(T, 4, 6).requires_grad_()
    y = x * 2
    view = y[1:, ::2].t()
    y.mul_(view.detach().sum())
    y[0].zero_()
    (grad,) = T.autograd.grad((view**2).sum(), x)
    return view, grad


@differential
def test_shape_changes_in_place(T: Any) -> Any:
    seen = []
    for change in (
        lambda y: y.t_(),
        lambda y: y.transpose_(0, 1),
        lambda y: y.swapaxes_(0, 1),
        lambda y: y.unsqueeze_(1),
        lambda y: y.unsqueeze_(0).squeeze_(),
        lambda y: y.unsqueeze_(0).squeeze_(0),
        lambda y: y.unsqueeze_(0).squeeze_((0, 1)),
        lambda y: y.as_strided_((2, 2), (6, 1), 1),
    ):
        x = _numbers(T, 4, 6).requires_grad_()
        y = x * 2
        same = change(y) is y
        (grad,) = T.autograd.grad((y * y).sum(), x)
        seen.append((same, y, y._version, grad))
    return seen


@differential
def test_shape_change_of_a_view_leaves_its_base_alone(T: Any) -> Any:
    x = _numbers(T, 4, 6).requires_grad_()
    y = x * 2
    view = y[1:3]
    view.t_()
    (grad,) = T.autograd.grad((view * _numbers(T, 6, 2)).sum(), x, retain_graph=True)
    before = (y.grad_fn.name(), view, view._base is y, grad)
    view.mul_(2)
    (grad,) = T.autograd.grad((view * _numbers(T, 6, 2)).sum() + y.sum(), x)
    return before, y, view, grad


@differential
def test_detach(T: Any) -> Any:
    x = _numbers(T, 4, 6).requires_grad_()
    y = x * 2
    loose = y.detach()
    loose.zero_()
    view_error = outcome(lambda: y[0].detach_(), "Can't detach views in-place")
    y.detach_()
    return loose, y, y._version, loose._is_view(), view_error


@differential
def test_parts_of_complex_tensors(T: Any) -> Any:
    x = T.complex(_numbers(T, 3, 4), _numbers(T, 3, 4) + 1).requires_grad_()
    results = [x.real, x.imag, T.view_as_real(x), T.view_as_complex(T.view_as_real(x)), x.conj_physical()]
    grads = [T.autograd.grad(each, x, T.ones_like(each), retain_graph=True)[0] for each in results]
    y = x.detach().clone()
    y.imag.zero_()
    y.real = T.ones(3, 4, dtype=T.float64)
    return results, grads, y


@pytest.mark.parametrize("part", ["real", "imag"])
@differential
def test_gradient_of_an_in_place_change_of_a_part(T: Any, part: str) -> Any:
    x = T.complex(_numbers(T, 3, 4), _numbers(T, 3, 4) + 1).requires_grad_()
    y = x * 2
    getattr(y, part)[1:].mul_(3)
    other = T.view_as_real(y)
    getattr(y, part)[0].zero_()
    return y, T.autograd.grad((y * y.conj()).real.sum() + other.sum(), x)


@differential
def test_gradient_of_an_in_place_change_of_pairs(T: Any) -> Any:
    x = _numbers(T, 3, 4, 2).requires_grad_()
    y = x * 2
    T.view_as_complex(y)[1:].mul_(1j)
    return y, T.autograd.grad((y * _numbers(T, 3, 4, 2)).sum(), x)


@pytest.mark.parametrize("dtype", ["int32", "float64", "int16", "uint8", "complex64"])
@differential
def test_bytes_as_another_dtype(T: Any, dtype: str) -> Any:
    x = _numbers(T, 3, 4, dtype="float32").requires_grad_()
    return x.view(getattr(T, dtype)), x.detach()[1:].view(dtype=getattr(T, dtype))


ERRORS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "view_size": (lambda T, x: x.view(5), "shape '[5]' is invalid for input of size 6"),
    "view_two_inferred": (lambda T, x: x.view(-1, -1), "only one dimension can be inferred"),
    "view_strides": (lambda T, x: x.t().view(6), "view size is not compatible with input tensor's size and stride"),
    "view_ambiguous": (lambda T, x: x[:0].view(-1, 0), "is ambiguous"),
    "view_dtype": (lambda T, x: x.view(T.float64), "self.size(-1) must be divisible by 2 to view Float as Double"),
    "transpose": (
        lambda T, x: x.transpose(0, 2),
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "t": (lambda T, x: x[None].t(), "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    "permute": (lambda T, x: x.permute(0, 0), "duplicate dims are not allowed"),
    "expand": (lambda T, x: x.expand(2, 4), "must match the existing size (3) at non-singleton dimension 1"),
    "narrow": (lambda T, x: x.narrow(0, 1, 2), "start (1) + length (2) exceeds dimension size (2)"),
    "select": (lambda T, x: x.select(0, 2), "index 2 out of range for tensor of size [2, 3] at dimension 0"),
    "unfold": (lambda T, x: x.unfold(0, 3, 1), "maximum size for tensor at dimension 0 is 2 but size is 3"),
    "diagonal": (lambda T, x: x.diagonal(0, 0, 0), "diagonal dimensions cannot be identical"),
    "as_strided": (lambda T, x: x.as_strided((7,), (1,)), "are out of bounds for storage of size 24"),
    "negative_stride": (lambda T, x: x.as_strided((2,), (-1,)), "Negative strides are not supported"),
    "split": (lambda T, x: x.split([1, 2]), "split_with_sizes expects split_sizes to sum exactly to 2"),
    "chunk": (lambda T, x: x.chunk(0), "chunk expects `chunks` to be greater than 0"),
    "hsplit": (lambda T, x: x.hsplit(2), "is not divisible by the split_size 2"),
    "unflatten": (lambda T, x: x.unflatten(1, (2, 2)), "don't multiply up to the size of dim 1 (3)"),
    "mT": (lambda T, x: x[0].mT, "tensor.mT is only supported on matrices or batches of matrices"),
    "imag": (lambda T, x: x.imag, "imag is not implemented for tensors with non-complex dtypes"),
    "movedim": (lambda T, x: x.movedim((0, 0), (0, 1)), "movedim: repeated dim in `source`"),
    "broadcast_tensors": (
        lambda T, x: T.broadcast_tensors(x, x[:, :2]),
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
@differential
def test_errors(T: Any, name: str) -> Any:
    action, phrase = ERRORS[name]
    return outcome(lambda: action(T, T.zeros(2, 3)), phrase)


@differential
def test_shape_change_in_place_of_a_leaf_is_refused(T: Any) -> Any:
    leaf = T.zeros(2, 3, requires_grad=True)
    return outcome(lambda: leaf.t_(), "a leaf Variable that requires grad is being used in an in-place operation")


@differential
def test_parts_made_together_are_not_changed_in_place(T: Any) -> Any:
    y = T.zeros(4, 3, requires_grad=True) * 2
    phrase = "This view is the output of a function that returns multiple views"
    return [outcome(lambda part=part: part.mul_(2), phrase) for part in (y.split(2)[0], y.unbind()[1], y.chunk(2)[1])]


@differential
def test_more_parts_than_a_shape_has_dimensions(T: Any) -> Any:
    x = T.arange(70)
    sizes = [1] * 68 + [T.tensor(2)]
    parts = x.split([1] * 70), T.split_with_sizes(x, sizes), T.split_with_sizes_copy(x, [1] * 70)
    return parts, x.roll([1] * 70, [0] * 70), T.ops.aten.split_with_sizes(x, [1] * 70)


@differential
def test_many_parts(T: Any) -> Any:
    x = T.arange(24.0 * 18).reshape(24, 18)
    sources = x, x.t(), x[::2], x[:1].expand(24, 18), x.reshape(12, 1, 36), x[:, 0]
    parts = [each.split(size, dim) for each in sources for size in (1, 2, 5) for dim in (0, -1)]
    parts += [each.unbind(dim) for each in sources for dim in (0, -1)]
    places = [(each.shape, each.stride(), each.storage_offset()) for found in parts for each in found]
    x.split(2, 1)[3].fill_(-1.0)
    return places, x, parts[1][3]._base is x
