"""`torch._foreach_*`: PyTorch's databases of them, their graphs, their errors."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch as pytorch
from torch.testing._internal import common_methods_invocations as database

import flambeau

from ...conformance.compare import Tolerance, differences, tensors_in
from ...conformance.translate import translate
from ...support.differential import differential, outcome

INFOS = [
    *database.foreach_unary_op_db,
    *database.foreach_binary_op_db,
    *database.foreach_pointwise_op_db,
    *database.foreach_reduce_op_db,
    *database.foreach_other_op_db,
]
DTYPES = ("float32", "bfloat16", "complex64", "int64", "bool")
of_each = pytest.mark.parametrize("info", INFOS, ids=lambda info: info.name)


def samples(info: Any, dtype: str, requires_grad: bool = False) -> Iterator[Any]:
    """The database's samples: lists of three small tensors."""
    pytorch.manual_seed(0)
    random.seed(0)  # the numbers among the operands
    options = {} if info.name == "_foreach_mm" else {"num_input_tensors": [3]}
    with pytorch.no_grad():  # by its function: `info.sample_inputs` inspects the whole stack each time
        found = list(info.sample_inputs_func(info, "cpu", getattr(pytorch, dtype), requires_grad, **options))
    for number, sample in enumerate(found):
        yield number, (sample.input, *sample.args), sample.kwargs


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            return error


def disagreement(name: str, args: Any, kwargs: Any) -> str | None:
    """How the two libraries differ in a call, and in what it left in its arguments."""
    ours = translate(args)
    expected = attempt(getattr(pytorch, name), *args, **kwargs)
    actual = attempt(getattr(flambeau, name), *ours, **translate(kwargs))
    if isinstance(expected, Exception):
        if "not implemented for" in str(expected) or isinstance(expected, type(actual)):
            return None
        return f"{type(expected).__name__}: {expected}, but {actual!r}"
    if isinstance(actual, Exception):
        return f"{type(actual).__name__}: {actual}"
    # PyTorch's powers in complex64 are that far from those in complex128.
    tolerance = Tolerance(1e-5, 1e-5) if name.startswith("_foreach_pow") else None
    pairs = (expected, actual), (args, ours)
    return next((found for a, b in pairs for found in differences(list(a), list(b), tolerance)), None)


@of_each
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(info: Any, dtype: str) -> None:
    names = [name for name in (info.name, f"{info.name}_") if hasattr(pytorch, name)]
    for number, args, kwargs in samples(info, dtype):
        for name in names if isinstance(args[0], list) else names[:1]:
            assert disagreement(name, args, kwargs) is None, f"{name}, sample {number}"


@of_each
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients(info: Any, dtype: str) -> None:
    def gradients(library: Any, args: Any, kwargs: Any, second: bool) -> Any:
        inputs = [each for each in tensors_in((args, kwargs)) if each.requires_grad]
        results = getattr(library, info.name)(*args, **kwargs)
        total = sum((each * (1 + 0.1 * place)).abs().sum() for place, each in enumerate(results))
        first = library.autograd.grad(total, inputs, create_graph=second, allow_unused=True)
        if not second:
            return [results[0].grad_fn.name(), [each.requires_grad for each in results], *first]
        again = sum(each.abs().sum() for each in first if each is not None and each.requires_grad)
        if not isinstance(again, library.Tensor):
            return []
        return library.autograd.grad(again, inputs, allow_unused=True)

    if not hasattr(pytorch, info.name) or info.name == "_foreach_powsum":
        return
    for number, args, kwargs in samples(info, dtype, True):
        if isinstance(args[-1], pytorch.Tensor) and args[-1].ndim == 1:
            continue  # numbers packed into a tensor: PyTorch has no derivative there
        for second in (False, True):
            expected = attempt(gradients, pytorch, args, kwargs, second)
            if isinstance(expected, Exception):
                break
            actual = attempt(gradients, flambeau, translate(args), translate(kwargs), second)
            assert not isinstance(actual, Exception), f"sample {number}: {actual!r}"
            assert next(differences(list(expected), list(actual)), None) is None, f"sample {number}"


def test_every_name_exists() -> None:
    names = {name for name in dir(pytorch) if name.startswith("_foreach")}
    assert names <= set(dir(flambeau))
    assert names == {name for name in dir(flambeau) if name.startswith("_foreach")}


def lists(T: Any) -> tuple[list[Any], list[Any]]:
    return [T.tensor([1.0, 2.0]), T.tensor([3.0])], [T.tensor([4.0, 5.0]), T.tensor([6.0])]


@differential
def test_ways_to_give_operands(T: Any) -> Any:
    a, b = lists(T)
    return (
        T._foreach_add(a, b, alpha=2),
        T._foreach_add(a, T.tensor(2.0), alpha=3),
        T._foreach_add(a, scalar=2.0),
        T._foreach_add(a, scalars=[2.0, 3.0]),
        T._foreach_add(self=a, other=b),
        T._foreach_mul(a, other=T.tensor(2.0)),
        T._foreach_add(tuple(a), [True, 2]),
        T._foreach_addcmul(a, b, b, T.tensor([2.0, 3.0])),
        T._foreach_addcdiv(a, b, b, scalars=[2.0, 3.0]),
        T._foreach_lerp(a, tensors1=b, weight=0.5),
        T._foreach_lerp(a, b, weights=b),
        T._foreach_pow(2.0, exponent=a),
        T._foreach_powsum([T.tensor([-1.0, 2.0])], 3),
        T._foreach_powsum([T.tensor([1.0, 3.0]).half(), T.tensor([1.0, 3.0j])]),
        T._foreach_norm(a, ord=1, dtype=T.float64),
        T._foreach_clone([T.ones(2, 3).t()], memory_format=T.contiguous_format),
        T._foreach_maximum([T.tensor([1, 5])], 1.5),
        T._foreach_abs([T.ones(2, device="meta")]),
    )


@differential
def test_in_place_functions_return_their_list(T: Any) -> Any:
    a, b = lists(T)
    results = [
        T._foreach_add_(a, 1.0) is a,
        T._foreach_zero_(b) is b,
        T._foreach_copy_(b, a, non_blocking=True) is b,
        T._foreach_sqrt_(tuple(a))[0] is a[0],
    ]
    return results, a, b, [each._version for each in a]


@differential
def test_one_node_for_all(T: Any) -> Any:
    x = [T.tensor([1.0, 2.0], requires_grad=True), T.tensor([3.0])]
    y = T._foreach_mul(x, 3)
    z = T._foreach_mul(x, x)
    with T.no_grad():
        free = T._foreach_exp(x)
    return (
        y,
        y[0].grad_fn is y[1].grad_fn,
        y[1].output_nr,
        T.autograd.grad(y[0].sum(), x[0]),
        T.autograd.grad(z[1].sum() + z[0].sum(), x[0]),
        free,
    )


@differential
def test_history_follows_in_place_functions(T: Any) -> Any:
    x = [T.tensor([1.0, 2.0], requires_grad=True), T.tensor([3.0])]
    y = [each.clone() for each in x]
    T._foreach_mul_(y, 3.0)
    T._foreach_addcmul_(y, x, [each.detach() for each in x], 2.0)
    refused = outcome(lambda: T._foreach_exp_(x), "a leaf Variable")
    return y[0].detach(), y[1], T.autograd.grad(y[0].sum(), x[0]), refused


@differential
def test_errors(T: Any) -> Any:
    a, b = lists(T)
    none, one, two = "at least one tensor", "same number of tensors, got 2 and 1", "same number of elements as scalar"
    return (
        outcome(lambda: T._foreach_abs([]), none),
        outcome(lambda: T._foreach_abs_([]), none),
        outcome(lambda: T._foreach_add([], []), none),
        outcome(lambda: T._foreach_zero_([]), none),
        outcome(lambda: T._foreach_pow(2.0, []), none),
        outcome(lambda: T._foreach_mm([], []), "non-empty"),
        outcome(lambda: T._foreach_add(a, b[:1]), one),
        outcome(lambda: T._foreach_addcmul(a, b, b[:1]), one),
        outcome(lambda: T._foreach_lerp(a, b[:1], 0.5), one),
        outcome(lambda: T._foreach_copy_(a, b[:1]), one),
        outcome(lambda: T._foreach_mm(a, b[:1]), "same number of tensors"),
        outcome(lambda: T._foreach_add(a, []), two),
        outcome(lambda: T._foreach_mul_(a, [1.0]), two),
        outcome(lambda: T._foreach_addcdiv(a, b, b, [1.0]), two),
        outcome(lambda: T._foreach_addcmul(a, b, b, T.tensor(2.0)), "packed scalar Tensor to be of dimension 1"),
        outcome(lambda: T._foreach_addcmul(a, b, b, T.ones(3)), "Expected length of scalars to match"),
        outcome(lambda: T._foreach_add(a, T.ones(2)), "scalar tensor expected to be 0 dim"),
        outcome(lambda: T._foreach_sub(a, T.ones(1)), "invalid combination of arguments"),
        outcome(lambda: T._foreach_add(a, 2.0, alpha=2), "invalid combination of arguments"),
        outcome(lambda: T._foreach_add(a, "x"), "invalid combination of arguments"),
        outcome(lambda: T._foreach_add(a), "invalid combination of arguments"),
        outcome(lambda: T._foreach_add(a, [b[0], 1.0]), "expected Tensor as element 1 in argument 1"),
        outcome(lambda: T._foreach_abs(a[0]), "must be tuple of Tensors, not Tensor"),
        outcome(lambda: T._foreach_abs([3]), "expected Tensor as element 0 in argument 0"),
        outcome(lambda: T._foreach_max([T.ones(0)]), "maximum of an empty tensor"),
        outcome(lambda: T._foreach_norm([T.ones(0)], float("inf")), "infinity norm on an empty tensor"),
        outcome(lambda: T._foreach_norm(a, "fro"), "must be Number, not str"),
        outcome(lambda: T._foreach_powsum([T.tensor([1])]), "not implemented for 'Long'"),
        outcome(lambda: T._foreach_add([T.ones(3)], b[:1]), "must match the size of tensor b"),
        outcome(lambda: T._foreach_add_([T.tensor([1])], 1.5), "can't be cast"),
    )


@differential
def test_many_small_tensors(T: Any) -> Any:
    """One kernel for all, where that gives the same as an op for each."""
    tensors = [T.arange(4.0) + number for number in range(20)]
    turned = [each.reshape(4, 1) for each in tensors]
    whole = [each.long() for each in tensors]
    wide = [each.double() for each in tensors]
    return (
        T._foreach_add(tensors, tensors),
        T._foreach_add(tensors, tensors, alpha=2),
        T._foreach_sub(tensors, 1.5),
        T._foreach_mul(tensors, [float(number) for number in range(20)]),
        T._foreach_add(tensors, 1j),
        T._foreach_add(tensors, turned),
        T._foreach_mul(turned, tensors),
        T._foreach_add(whole, 0.5),
        T._foreach_add(tensors, wide),
        T._foreach_div(tensors, whole),
        T._foreach_maximum(tensors, 3.0),
        T._foreach_pow(tensors, 2),
        T._foreach_addcmul(tensors, tensors, tensors, 0.5),
        T._foreach_addcmul(tensors, turned, tensors, 0.5),
        T._foreach_lerp(tensors, [each * 2 for each in tensors], 0.25),
        [each.tolist() for each in tensors],
    )
