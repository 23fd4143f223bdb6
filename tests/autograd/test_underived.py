"""What has no derivative says so, or has a gradient of zero: nothing is left out of a graph in silence."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.differential import differential, outcome

COMPARISONS = ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"]


@pytest.mark.parametrize("name", COMPARISONS)
@differential
def test_comparisons_in_place_forget_what_was_there(T: Any, name: str) -> Any:
    seen = []
    for other in (2.0, T.tensor([1.0, 3.0, 0.0], requires_grad=True), T.tensor(1.0, requires_grad=True)):
        for needs in (True, False):
            x = T.tensor([1.0, 2.0, 2.0], requires_grad=needs)
            changed = x * 1
            returned = getattr(changed, name)(other)
            seen.append((changed.detach(), returned is changed, changed.requires_grad, changed._version))
            if isinstance(other, T.Tensor):
                seen.append(changed)
            leaves = [each for each in (x, other) if isinstance(each, T.Tensor) and each.requires_grad]
            if changed.requires_grad:
                seen.append(T.autograd.grad(changed.sum(), leaves, allow_unused=True))
    base = T.arange(6.0, requires_grad=True)
    rows = base.reshape(2, 3) * 1
    getattr(rows[0], name)(1.0)
    with T.no_grad():
        silent = T.ones(3, requires_grad=True)
        getattr(silent, name)(1.0)
    return seen, rows, T.autograd.grad(rows.sum(), base), silent


@pytest.mark.parametrize(
    ("expression", "phrase"),
    [
        ("T.unique(x)", "derivative for '_unique2' is not implemented"),
        ("T.unique(x, return_inverse=True)[0]", "derivative for '_unique2' is not implemented"),
        ("T.unique(x, dim=0)", "derivative for 'unique_dim' is not implemented"),
        ("T.unique_consecutive(x)", "derivative for 'unique_consecutive' is not implemented"),
        ("T.unique_consecutive(x, dim=0)", "derivative for 'unique_consecutive' is not implemented"),
        ("T.histogram(x, 3).hist", "derivative for aten::histogram is not implemented"),
        ("T.histogram(x.detach(), 4, weight=x).hist", "derivative for aten::histogram is not implemented"),
        ("T.histogramdd((x[:, None] * T.ones(2)).detach(), [2, 2], weight=x).hist", "is not implemented"),
        ("T.bincount(T.tensor([1, 2, 2]), weights=x)", "derivative for aten::bincount is not implemented"),
    ],
)
@differential
def test_what_has_no_derivative_refuses_backward(T: Any, expression: str, phrase: str) -> Any:
    x = T.tensor([1.0, 2.0, 2.0], requires_grad=True)
    result = eval(expression, {"T": T, "x": x})
    return result.requires_grad, result.detach(), outcome(lambda: result.sum().backward(), phrase)


@pytest.mark.parametrize(
    ("expression", "phrase"),
    [
        (
            "F.nll_loss(x, labels, weight=w)",
            "'nll_loss_forward' is not differentiable with respect to argument 'weight'",
        ),
        ("F.cross_entropy(x, labels, weight=w)", "'nll_loss_forward' is not differentiable"),
        ("F.cross_entropy(x, labels, weight=w, label_smoothing=0.1)", "'nll_loss_forward' is not differentiable"),
        ("F.nll_loss(x[:, :, None, None], labels[:, None, None], weight=w)", "'nll_loss2d_forward' is not diff"),
        ("F.nll_loss(x[:, :, None], labels[:, None], weight=w)", "'nll_loss2d_forward' is not differentiable"),
        ("F.binary_cross_entropy(x, x.detach(), weight=w)", "'binary_cross_entropy' is not differentiable"),
        ("F.binary_cross_entropy_with_logits(x, x, weight=w)", "not differentiable with respect to argument 'weight'"),
        ("F.binary_cross_entropy_with_logits(x, x, pos_weight=w)", "with respect to argument 'pos_weight'"),
        ("T.linalg.pinv(x, rtol=w[0])", "'linalg_pinv' is not differentiable with respect to argument 'rtol'"),
        ("F.silu(x.to(T.complex64))", "silu does not support automatic differentiation for outputs with complex dtype"),
        ("x.to(T.complex64).to_sparse()", "_to_sparse does not support automatic differentiation"),
    ],
)
@differential
def test_arguments_without_a_derivative_may_need_none(T: Any, expression: str, phrase: str) -> Any:
    names = {
        "T": T, "F": T.nn.functional, "x": T.tensor([[0.1, 0.2], [0.5, 0.9], [0.3, 0.4]], requires_grad=True),
        "labels": T.tensor([0, 1, 1]), "w": T.tensor([1.0, 2.0], requires_grad=True),
    }  # fmt: skip
    refused = outcome(lambda: eval(expression, names), phrase)
    with T.no_grad():
        return refused, eval(expression, names).shape


@differential
def test_class_probabilities_may_have_weights_with_gradients(T: Any) -> Any:
    x = T.tensor([[0.1, 0.2], [0.5, 0.9]], requires_grad=True)
    w = T.tensor([1.0, 2.0], requires_grad=True)
    loss = T.nn.functional.cross_entropy(x, T.tensor([[0.3, 0.7], [1.0, 0.0]]), weight=w)
    return loss, T.autograd.grad(loss, (x, w))
