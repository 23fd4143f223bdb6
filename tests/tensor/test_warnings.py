"""Warnings: what PyTorch warns of, Flambeau warns of too. Differential tests compare them; these are about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau._core.process import caller

from ..support.differential import compare, differential, outcome, warned


@pytest.fixture(autouse=True)
def once_more() -> Iterator[None]:
    caller._given.clear()
    yield
    caller._given.clear()


def _read_only() -> Any:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "from_numpy": (lambda T: T.from_numpy(_read_only()), "The given NumPy array is not writable"),
    "as_tensor": (lambda T: T.as_tensor(_read_only()), "The given NumPy array is not writable"),
    "asarray": (lambda T: T.asarray(_read_only()), "The given NumPy array is not writable"),
    "frombuffer": (lambda T: T.frombuffer(b"abcd", dtype=T.uint8), "The given buffer is not writable"),
    "float": (lambda T: float(T.ones((), requires_grad=True)), "Converting a tensor with requires_grad=True"),
    "float of a result": (lambda T: float(T.ones((), requires_grad=True) * 2), "requires_grad=True to a scalar"),
    "complex": (lambda T: complex(T.ones(1, requires_grad=True)), "Converting a tensor with requires_grad=True"),
    "empty complex32": (lambda T: T.empty(0, dtype=T.complex32), "ComplexHalf support is experimental"),
    "complex32 from data": (lambda T: T.tensor([1j], dtype=T.chalf).shape, "ComplexHalf support is experimental"),
    "to complex32": (lambda T: T.ones(2).to(T.complex32).shape, "ComplexHalf support is experimental"),
    "out": (lambda T: T.add(T.ones(3), 1, out=T.ones(2)), "An output with one or more elements was resized"),
    "sum out": (lambda T: T.sum(T.ones(3, 2), 0, out=T.ones(5)), "An output with one or more elements was resized"),
    "cholesky": (lambda T: T.cholesky(T.eye(2)), "torch.cholesky is deprecated in favor of torch.linalg.cholesky"),
    "qr": (lambda T: T.qr(T.eye(2)), "torch.qr is deprecated in favor of torch.linalg.qr"),
    "lu": (lambda T: T.lu(T.eye(2)), "torch.lu is deprecated in favor of torch.linalg.lu_factor"),
    "lu_solve": (lambda T: T.lu_solve(T.eye(2), *T.linalg.lu_factor(T.eye(2))), "torch.lu_solve is deprecated"),
    "triangular_solve": (lambda T: T.triangular_solve(T.eye(2), T.eye(2)), "torch.triangular_solve is deprecated"),
    "chain_matmul": (lambda T: T.chain_matmul(T.eye(2), T.eye(2)), "torch.chain_matmul is deprecated"),
    "cross": (lambda T: T.cross(T.ones(3, 3), T.ones(3, 3)), "Using torch.cross without specifying the dim arg"),
    "scatter": (
        lambda T: T.zeros(3).scatter(0, T.tensor([0]), T.ones(1), reduce="add"),
        "The reduce argument of torch.scatter with Tensor src is deprecated",
    ),
    "index_reduce": (
        lambda T: T.zeros(3).index_reduce(0, T.tensor([0]), T.ones(1), "amax"),
        "index_reduce() is in beta",
    ),
    "where": (
        lambda T: T.where(T.ones(2, dtype=T.uint8), T.ones(2), T.ones(2)),
        "where received a uint8 condition tensor",
    ),
    "range": (lambda T: T.range(0, 3), "torch.range is deprecated"),
    "meshgrid": (lambda T: T.meshgrid(T.ones(2), T.ones(3)), "torch.meshgrid: in an upcoming release"),
    "T of three dimensions": (lambda T: T.ones(2, 2, 2).T, "The use of `x.T` on tensors of dimension other than 2"),
    "grad of a result": (lambda T: (T.ones(2, requires_grad=True) * 2).grad, "The .grad attribute of a Tensor"),
    "std of one": (lambda T: T.ones(1).std(), "std(): degrees of freedom is <= 0"),
    "imaginary parts": (lambda T: T.ones(2, dtype=T.complex64).to(T.float32), "Casting complex values to real"),
    "csr": (lambda T: T.eye(2).to_sparse_csr().to_dense(), "Sparse CSR tensor support is in beta state"),
    "sizes of a loss": (lambda T: T.nn.functional.mse_loss(T.ones(2), T.ones(2, 1)), "Using a target size"),
    "volatile": (lambda T: T.autograd.Variable(T.ones(2), volatile=True).shape, "volatile was removed and now has"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_warnings(name: str) -> None:
    action, phrase = CASES[name]

    def scenario(T: Any) -> Any:
        T.set_warn_always(True)
        return warned(lambda: action(T), phrase)

    compare(scenario)


@differential
def test_create_graph(T: Any) -> Any:
    x = T.ones(2, requires_grad=True)
    return warned(lambda: (x * x).sum().backward(create_graph=True), "Using backward() with create_graph=True")[1:]


@differential
def test_default_tensor_type(T: Any) -> Any:
    try:
        return warned(
            lambda: T.set_default_tensor_type(T.DoubleTensor), "torch.set_default_tensor_type() is deprecated"
        )
    finally:
        T.set_default_dtype(T.float32)


@differential
def test_no_warning(T: Any) -> Any:
    """What is converted without gradients, or not to a float, is nobody's mistake."""
    x = T.ones((), requires_grad=True)
    return [
        warned(lambda: x.item()),
        warned(lambda: int(x)),
        warned(lambda: bool(x)),
        warned(lambda: float(x.detach())),
        warned(lambda: T.tensor(_read_only())),
        warned(lambda: T.add(T.ones(3), 1, out=T.empty(0))),
        warned(lambda: T.linalg.cross(T.ones(3, 3), T.ones(3, 3))),
    ]


@differential
def test_warn_always(T: Any) -> Any:
    T.set_warn_always(True)
    enabled = T.is_warn_always_enabled()
    twice = [warned(lambda: T.cross(T.ones(3, 3), T.ones(3, 3))) for _ in range(2)]
    T.set_warn_always(False)
    return enabled, twice, T.is_warn_always_enabled(), outcome(lambda: T.set_warn_always(1), "expects a bool")


def test_warnings_are_given_once_and_name_the_users_line() -> None:
    with pytest.warns(UserWarning, match=r"torch\.qr is deprecated") as caught:
        [flambeau.qr(flambeau.eye(2)) for _ in range(2)]
    assert [each.filename for each in caught] == [__file__]


def test_differential_tests_see_warnings() -> None:
    """A warning that only one library gives fails a comparison."""

    def scenario(T: Any) -> Any:
        if T is flambeau:
            flambeau.qr(flambeau.eye(2))

    with pytest.raises(AssertionError, match=r"Flambeau warns: UserWarning: torch\.qr is deprecated in"):
        compare(scenario)
