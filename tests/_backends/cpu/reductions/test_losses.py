"""Generated nll_loss and cross_entropy beside NumPy's and PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("llvmlite")

import flambeau
from flambeau._backends.cpu.reductions import losses

from .row_cases import TOLERANCE, close, compare

# (samples, classes, places...), with few and many classes, and one sample without a batch dimension.
SHAPES = [(40, 10), (5, 300), (3, 4), (2, 5, 9), (2, 3, 4, 5), (7,)]


def _case(shape: tuple[int, ...], ignored: int = -100) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = rng.integers(0, classes, () if len(shape) == 1 else (shape[0], *shape[2:]))
    if target.size > 4:
        target.reshape(-1)[::4] = ignored
    return rng.standard_normal(shape) * 2, target


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients(reduction: str, weighted: bool) -> None:
    for shape in SHAPES:
        x, target = _case(shape, ignored=1)
        classes = shape[0] if len(shape) == 1 else shape[1]
        weights = np.linspace(0.5, 2, classes) if weighted else None

        def call(T: Any, x: Any, target: Any, weight: Any) -> Any:
            weight = None if weight is None else weight.detach()
            return T.nn.functional.cross_entropy(x, target, weight, ignore_index=1, reduction=reduction)

        compare("float32", call, [x, target, weights], tolerance=4)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_dtypes(dtype: str) -> None:
    for shape in ((40, 10), (5, 300), (2, 5, 9)):
        x, target = _case(shape)
        compare(dtype, lambda T, x, t: T.nn.functional.cross_entropy(x, t), [x, target], tolerance=4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_loss_alone_is_that_with_a_derivative(dtype: str) -> None:
    for shape in ((40, 10), (5, 300), (3, 4)):
        x, target = _case(shape)
        logits = flambeau.from_numpy(x).to(getattr(flambeau, dtype))
        goal = flambeau.from_numpy(target)
        for reduction in ("mean", "sum", "none"):
            alone = flambeau.nn.functional.cross_entropy(logits, goal, reduction=reduction)
            recorded = flambeau.nn.functional.cross_entropy(logits.clone().requires_grad_(), goal, reduction=reduction)
            close(alone.double().numpy(), recorded.detach().double().numpy(), TOLERANCE[dtype] / 4)


def test_bytes_as_targets() -> None:
    x = np.random.default_rng(0).standard_normal((6, 200))
    target = np.array([0, 3, 199, 100, 128, 7], np.uint8)
    compare("float32", lambda T, x, t: T.nn.functional.nll_loss(x.log_softmax(1), t), [x, target], tolerance=4)


def test_more_losses_than_one_block() -> None:
    x, target = _case((3, 2, 60, 100))
    for reduction in ("mean", "none"):
        compare(
            "float32",
            lambda T, x, t, reduction=reduction: T.nn.functional.cross_entropy(x, t, reduction=reduction),
            [x, target],
            tolerance=4,
        )


def test_smoothed_labels() -> None:
    x, target = _case((12, 40))
    weights = np.linspace(0.5, 2, 40)
    for reduction in ("mean", "sum", "none"):

        def call(T: Any, x: Any, target: Any, weight: Any, reduction: str = reduction) -> Any:
            return T.nn.functional.cross_entropy(x, target, weight.detach(), reduction=reduction, label_smoothing=0.1)

        compare("float32", call, [x, target, weights], tolerance=8)


def test_all_ignored() -> None:
    x = flambeau.zeros(4, 3, requires_grad=True)
    target = flambeau.full((4,), -100)
    assert flambeau.nn.functional.cross_entropy(x, target).isnan()
    assert flambeau.nn.functional.cross_entropy(x.detach(), target).isnan()
    assert flambeau.nn.functional.cross_entropy(x, target, reduction="sum").item() == 0


@pytest.mark.parametrize("wrong", [4, -1, 1 << 40])
@pytest.mark.parametrize("recorded", [False, True])
def test_targets_that_are_no_classes(wrong: int, recorded: bool) -> None:
    x = flambeau.zeros(10, 4, requires_grad=recorded)
    target = flambeau.zeros(10, dtype=flambeau.int64)
    target[7] = wrong
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        flambeau.nn.functional.cross_entropy(x, target)
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        flambeau.nn.functional.nll_loss(x, target)


def test_infinite_logits() -> None:
    x = np.zeros((9, 5), np.float32)
    x[0, 1], x[1, 0], x[2] = -np.inf, np.inf, np.nan
    target = np.array([1, 0, 0, 1, 2, 3, 4, 0, 1])
    got, wanted = (
        T.nn.functional.cross_entropy(T.from_numpy(x), T.from_numpy(target), reduction="none").numpy()
        for T in (flambeau, torch)
    )
    close(got, wanted, 1e-6)


def test_logits_may_change_after_the_loss() -> None:
    """The derivative keeps log-probabilities, not the logits."""
    x = flambeau.randn(6, 50, requires_grad=True)
    logits = x * 1
    loss = flambeau.nn.functional.cross_entropy(logits, flambeau.zeros(6, dtype=flambeau.int64))
    (wanted,) = flambeau.autograd.grad(loss, x, retain_graph=True)
    logits.detach().zero_()
    (found,) = flambeau.autograd.grad(loss, x)
    assert found.equal(wanted)


def test_nodes_are_those_of_pytorch() -> None:
    names = []
    for T in (flambeau, torch):
        x = T.zeros(5, 40, requires_grad=True)
        loss = T.nn.functional.cross_entropy(x, T.zeros(5, dtype=T.int64))
        names.append((loss.grad_fn.name(), loss.grad_fn.next_functions[0][0].name()))
    assert names[0] == names[1]


def test_second_derivatives_go_by_the_formulas() -> None:
    target = flambeau.tensor([0, 2, 3, 1])
    x = flambeau.from_numpy(np.random.default_rng(0).standard_normal((4, 5))).requires_grad_()
    assert flambeau.autograd.gradgradcheck(lambda x: flambeau.nn.functional.cross_entropy(x, target), x, atol=1e-6)


def test_what_has_no_kernel_is_left_to_numpy() -> None:
    ones, target = np.ones((3, 4), np.float32), np.zeros(3, np.int64)
    assert losses.nll_loss(ones, target, None, 1, -100) is not None
    assert losses.nll_loss(ones, target.astype(np.int32), None, 1, -100) is None
    assert losses.nll_loss(ones, target, np.ones(4), 1, -100) is None
    assert losses.nll_loss(ones, target + 4, None, 1, -100) is None
    assert losses.cross_entropy(ones[None], target, None, 1, -100) is None
