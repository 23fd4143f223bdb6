"""Copies, conversions and whole-tensor writes: values, strides, histories and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome

OVERWRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "copy_": lambda T, target, source: target.copy_(source),
    "copy_ of a row": lambda T, target, source: target.copy_(source[0]),
    "copy_ of a number": lambda T, target, source: target.copy_(source[0, 0]),
    "copy_ of doubles": lambda T, target, source: target.copy_(source.double()),
    "copy_ of constants": lambda T, target, source: target.copy_(T.full((3,), 7)),
    "fill_": lambda T, target, source: target.fill_(3),
    "fill_ with a tensor": lambda T, target, source: target.fill_(source[1, 1]),
    "zero_": lambda T, target, source: target.zero_(),
    "row": lambda T, target, source: target[0].copy_(source[1]),
    "column": lambda T, target, source: target[:, 1].fill_(source[0, 0]),
    "transposed": lambda T, target, source: target.t().zero_(),
}


@differential
@pytest.mark.parametrize("name", OVERWRITES)
def test_gradients_of_overwriting(T: Any, name: str) -> Any:
    x = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    source = T.tensor([[-1.0, 0.5, 2.0], [3.0, -2.0, 1.0]], requires_grad=True)
    y = x * 2
    OVERWRITES[name](T, y, source)
    (first,) = T.autograd.grad((y**3).sum(), source, create_graph=True, allow_unused=True)
    second = None if first is None else T.autograd.grad(first.sum(), source, allow_unused=True)[0]
    y_again = x * 2
    OVERWRITES[name](T, y_again, source)
    (y_again**2).sum().backward()
    return y, y._version, first, second, x.grad, source.grad


@differential
@pytest.mark.parametrize("name", OVERWRITES)
def test_overwriting_outside_any_graph(T: Any, name: str) -> Any:
    target = T.arange(6.0).view(2, 3)
    returned = OVERWRITES[name](T, target, T.arange(6.0).view(2, 3) * 10)
    return target, target._version, target.requires_grad, returned.shape


@differential
def test_nodes_of_overwriting(T: Any) -> Any:
    x, value = T.ones(2, requires_grad=True), T.tensor(3.0, requires_grad=True)
    results = [
        (x * 1).copy_(T.ones(2)), T.ones(2).copy_(x), (x * 1).fill_(1), (x * 1).fill_(value), (x * 1).zero_(),
        T.fill(x, 1), T.fill(x, value),
    ]  # fmt: skip
    return [(each.grad_fn.name(), len(each.grad_fn.next_functions)) for each in results]


@differential
def test_integers_cut_the_graph(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    return T.zeros(2, dtype=T.int64).copy_(x * 2.7), (x * 2.7).long(), x.to(T.bool)


@differential
def test_overlapping_copies(T: Any) -> Any:
    phrase = "some elements of the input tensor and the written-to tensor refer to a single memory location"
    x = T.arange(6.0)
    return {
        "shifted": outcome(lambda: x[1:].copy_(x[:-1]), phrase),
        "transposed": outcome(lambda: x.view(2, 3).copy_(x.view(3, 2).t()), phrase),
        "element": outcome(lambda: x[:3].copy_(x[0]), phrase),
        "itself": x.copy_(x),
        "halves": x[:3].copy_(x[3:]),
        "interleaved": x[::2].copy_(x[1::2]),
        "expanded": outcome(lambda: T.ones(3).expand(2, 3).copy_(T.ones(3)), "more than one element"),
        "expanded fill": T.ones(3).expand(2, 3).fill_(2),
    }


@differential
def test_copy_refuses(T: Any) -> Any:
    return {
        "size": outcome(lambda: T.ones(2).copy_(T.ones(3)), "The size of tensor a (2) must match"),
        "rank": outcome(
            lambda: T.ones(2).copy_(T.ones(2, 2)), "output with shape [2] doesn't match the broadcast shape"
        ),
        "text": outcome(lambda: T.ones(2).copy_("a")),
        "list": outcome(lambda: T.ones(2).copy_([1, 2])),
        "meta": outcome(lambda: T.ones(2).copy_(T.ones(2, device="meta")), "no data"),
        "fill vector": outcome(lambda: T.ones(2).fill_(T.ones(2)), "fill_ only supports 0-dimension value tensor"),
        "fill text": outcome(lambda: T.ones(2).fill_("a")),
        "leaf": outcome(lambda: T.ones(2, requires_grad=True).copy_(T.ones(2)), "a leaf Variable that requires grad"),
    }


@differential
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_strides_of_copies(T: Any, order: tuple[int, ...]) -> Any:
    view = T.zeros(2, 3, 4, 5).permute(order)
    sources = [view, view[:, ::2], view[1:], view[:, :1], view[..., :2], view.expand(2, *view.shape), view[:, :0]]
    return [
        (
            each.clone().stride(),
            T.empty_like(each).stride(),
            T.zeros_like(each[:, :1]).stride(),
            each.double().stride(),
            each.contiguous().stride(),
            each.to(T.float16, memory_format=T.contiguous_format).stride(),
        )
        for each in sources
    ]


@differential
def test_channels_last(T: Any) -> Any:
    x = T.arange(120.0).view(2, 3, 4, 5)
    y = x.to(memory_format=T.channels_last)
    return {
        "to": y,
        "flags": (y.is_contiguous(), y.is_contiguous(memory_format=T.channels_last), y[0].is_contiguous()),
        "contiguous": y.contiguous(),
        "contiguous as": x.contiguous(memory_format=T.channels_last),
        "same": y.contiguous(memory_format=T.channels_last) is y,
        "clone": y.clone(),
        "clone as": y.clone(memory_format=T.contiguous_format),
        "double": y.double(),
        "like": T.ones_like(y),
        "resize": T.zeros(2, 3, 4, 5).resize_(1, 2, 3, 4, memory_format=T.channels_last).stride(),
        "one by one": T.ones(1, 3, 1, 1).is_contiguous(memory_format=T.channels_last),
        "rank": outcome(lambda: T.ones(2, 3).clone(memory_format=T.channels_last), "required rank 4 tensor"),
    }


@differential
def test_conversions_between_categories(T: Any) -> Any:
    x = T.tensor([1.5, -2.5, 300.0, 0.0])
    names = ("bool", "int16", "int64", "float16", "bfloat16", "float64", "complex64")
    return {
        "float": [x.to(getattr(T, name)) for name in names],
        "complex to float": T.tensor([1 + 2j, 3]).to(T.float32),
        "complex to bool": T.tensor([1j, 0]).bool(),
        "complex to int": T.tensor([1.7 + 2j]).long(),
        "nan": T.tensor([float("nan")]).bool(),
        "gradient of complex": _gradient_through(T, lambda leaf: leaf.to(T.complex64).abs()),
        "gradient of half": _gradient_through(T, lambda leaf: (leaf.half() * 3).float()),
    }


def _gradient_through(T: Any, function: Callable[[Any], Any]) -> Any:
    leaf = T.tensor([2.0, -1.0], requires_grad=True)
    function(leaf).sum().backward()
    return leaf.grad


@differential
@pytest.mark.parametrize(
    "value", [0, -1, 300, 1e300, float("inf"), float("nan"), 1j, 1 + 0j, True, -129, 70000.0], ids=str
)
@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "complex64"])
def test_numbers_that_do_not_fit(T: Any, name: str, value: Any) -> Any:
    dtype = getattr(T, name)
    return (
        outcome(lambda: T.full((2,), value, dtype=dtype)),
        outcome(lambda: T.zeros(2, dtype=dtype).fill_(value)),
        outcome(lambda: T.full_like(T.zeros(2), value, dtype=dtype)),
    )


@differential
def test_complex_from_parts(T: Any) -> Any:
    real = T.tensor([1.0, -2.0], dtype=T.float64, requires_grad=True)
    imag = T.tensor([[0.5], [2.0]], dtype=T.float64, requires_grad=True)
    weight = T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128)
    results = []
    for function in (T.complex, T.polar):
        made = function(real, imag)
        loss = (made * weight).abs().sum()
        first = T.autograd.grad(loss, (real, imag), create_graph=True)
        second = T.autograd.grad(first[0].sum() + first[1].sum(), (real, imag))
        results.append((made, first, second))
    return results


@differential
def test_subclasses_are_kept(T: Any) -> Any:
    class Marked(T.Tensor):  # type: ignore[misc,name-defined]
        pass

    tensor = T.ones(2).as_subclass(Marked)
    results = (
        Marked([1.0, 2.0]), T.Tensor._make_subclass(Marked, T.ones(2), True), tensor + 1, T.zeros_like(tensor),
        tensor.clone(), tensor.to(T.float64), tensor.double(), tensor.copy_(T.ones(2)), tensor.zero_(),
        tensor.contiguous(), tensor.new_zeros(2), tensor.detach(), tensor.as_subclass(T.Tensor), tensor.numpy(),
    )  # fmt: skip
    return [type(each).__name__ for each in results], repr(tensor)


@differential
def test_inference_tensors(T: Any) -> Any:
    with T.inference_mode():
        inside = T.ones(2)
        inside.zero_().fill_(3.0)
        inside.copy_(T.ones(2))
        made = [inside.clone(), inside.double(), T.zeros_like(inside), T.tensor([1.0])]
    phrase = "Inplace update to inference tensor outside InferenceMode is not allowed"
    return (
        [each.is_inference() for each in made],
        outcome(lambda: inside.zero_(), phrase),
        outcome(lambda: inside.copy_(T.ones(2)), phrase),
        outcome(lambda: inside.fill_(3), phrase),
        inside.clone().zero_(),
    )


@differential
def test_tangents_of_what_is_copied_into_a_part(T: Any) -> Any:
    ad = T.autograd.forward_ad
    results = []
    with ad.dual_level():
        dual = ad.make_dual(T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0]))
        for write in (lambda part: part.copy_(dual), lambda part: part.add_(dual)):
            whole = T.zeros(4)
            write(whole[1:3])
            results.append(ad.unpack_dual(whole).tangent)
        whole = T.zeros(4)
        whole[2:] = dual
        results.append(ad.unpack_dual(whole).tangent)
    return results


@differential
def test_scatter_without_dimensions(T: Any) -> Any:
    x, zero, src = T.tensor(1.0), T.tensor(0), T.tensor(2.0)
    return x.scatter(0, zero, src), x.scatter_add(0, zero, src), x.scatter_reduce(0, zero, src, "amax")


_PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "a number": lambda T, x: x.__setitem__(slice(1, 3), 1),
    "steps": lambda T, x: x.__setitem__(slice(0, 4, 3), True),
    "all": lambda T, x: x.__setitem__(..., 2.5),
    "an element": lambda T, x: x.__setitem__(slice(1, 3), x[0, 0]),
    "a tensor of the host": lambda T, x: x.__setitem__(slice(1, 3), T.tensor(3)),
    "fill_ with an element": lambda T, x: x[1:].fill_(x[0, 0]),
    "fill_ with a tensor of the host": lambda T, x: x[1:].fill_(T.tensor(3.0)),
    "a column": lambda T, x: x.__setitem__((slice(None), 1), 1.5),
    "masked": lambda T, x: x.masked_fill_(x != 0, x[0, 0]),
    "positions": lambda T, x: x.__setitem__(T.tensor([1, 2]), 1),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("name", _PARTS)
@differential
def test_parts_of_tensors_without_data_are_filled(T: Any, name: str, dtype: str) -> Any:
    x = T.zeros(4, 2, dtype=getattr(T, dtype), device="meta")
    _PARTS[name](T, x)
    return x._version, list(x.shape), list(x.stride())
