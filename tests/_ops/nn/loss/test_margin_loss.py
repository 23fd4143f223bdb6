"""Losses with margins, of embeddings and of distributions against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ....support.differential import differential, outcome, warned

EXPRESSIONS = [
    "soft_margin_loss(x, sign, {})",
    "hinge_embedding_loss(x, sign, 0.7, {})",
    "margin_ranking_loss(x, y, sign, 0.3, {})",
    "multilabel_soft_margin_loss(x, sign.clamp(min=0), {})",
    "multilabel_soft_margin_loss(x, sign.clamp(min=0), y.abs(), {})",
    "multi_margin_loss(x, labels, {})",
    "multi_margin_loss(x, labels, 2, 0.5, weight, {})",
    "multi_margin_loss(x[0], labels[0], {})",
    "multi_margin_loss(x[0], labels[:1], {})",
    "multilabel_margin_loss(x, many, {})",
    "multilabel_margin_loss(x[0], many[0], {})",
    "cosine_embedding_loss(x, y, sign[:, 0], 0.2, {})",
    "cosine_embedding_loss(x[0], y[0], sign[0, 0], {})",
    "triplet_margin_loss(x, y, z, {})",
    "triplet_margin_loss(x, y, z, 0.5, 3.0, swap=True, {})",
    "triplet_margin_with_distance_loss(x, y, z, swap=True, {})",
    "triplet_margin_with_distance_loss(x, y, z, distance_function=lambda a, b: (a - b).abs().sum(-1), {})",
    "gaussian_nll_loss(x, y, z.abs(), full=True, {})",
    "gaussian_nll_loss(x, y, weight.abs()[:3], eps=0.5, {})",
    "gaussian_nll_loss(x, y, 2.0, {})",
    "poisson_nll_loss(x, y.abs() * 3, full=True, {})",
    "poisson_nll_loss(x.abs(), y, log_input=False, {})",
    "kl_div(x, y, log_target=True, {})",
]


def _names(T: Any) -> dict[str, Any]:
    x, y, z = (
        T.linspace(start, end, 12, dtype=T.float64).sin().reshape(3, 4).requires_grad_()
        for start, end in ((0.3, 30.0), (2.1, 51.0), (-1.0, 77.0))
    )
    sign = T.tensor([[1, -1, 1, -1], [-1, 1, 1, 1], [1, 1, -1, -1]], dtype=T.float64)
    return {
        "x": x, "y": y, "z": z, "sign": sign, "F": T.nn.functional, "T": T,
        "labels": T.tensor([1, 0, 3]), "weight": T.tensor([0.5, 2.0, 1.0, 0.0], dtype=T.float64),
        "many": T.tensor([[3, 0, -1, 1], [-1, 2, 1, 0], [2, 1, 0, 3]]),
    }  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
@differential(tolerance=1e-5)
def test_values_and_gradients(T: Any, expression: str) -> Any:
    observed: list[Any] = []
    for reduction in ("none", "mean", "sum"):
        names = _names(T)
        loss = eval("F." + expression.format(f"reduction={reduction!r}"), names)
        loss.backward(T.linspace(0.5, 1.5, loss.numel(), dtype=T.float64).reshape(loss.shape))
        observed += [loss, [names[each].grad for each in "xyz"]]
    return observed


@pytest.mark.parametrize(
    "expression",
    [
        "F.soft_margin_loss(x, sign)",
        "F.cosine_embedding_loss(x, y, sign[:, 0], 0.2)",
        "F.gaussian_nll_loss(x, y, z.abs() + 0.1)",
        "F.poisson_nll_loss(x, y.abs() + 1.5, full=True)",
        "F.triplet_margin_loss(x, y, z)",
    ],
)
def test_second_derivatives(expression: str) -> None:
    import flambeau

    names = _names(flambeau)

    def loss(x: Any, y: Any, z: Any) -> Any:
        return eval(expression, {**names, "x": x, "y": y, "z": z})

    inputs = [names[each] for each in "xyz"]
    assert flambeau.autograd.gradcheck(loss, inputs)
    assert flambeau.autograd.gradgradcheck(loss, inputs)


@pytest.mark.parametrize("name", ["multi_margin_loss(x, labels)", "multilabel_margin_loss(x, many)"])
@differential
def test_without_a_second_derivative(T: Any, name: str) -> Any:
    names = _names(T)
    x = names["x"]
    (first,) = T.autograd.grad(eval(f"F.{name}", names), x, create_graph=True)
    return first, outcome(lambda: T.autograd.grad(first.sum(), x), "is not implemented")


@differential
def test_torch_functions_take_numbers_for_reductions(T: Any) -> Any:
    names = _names(T)
    return [
        eval(f"T.{call}", names)
        for call in (
            "hinge_embedding_loss(x, sign, 0.7, 2)",
            "margin_ranking_loss(x, y, sign, 0.1, 0)",
            "cosine_embedding_loss(x, y, sign[:, 0])",
            "triplet_margin_loss(x, y, z, reduction=2)",
            "poisson_nll_loss(x, y, True, False, 1e-8, 1)",
            "kl_div(x, y, 0, log_target=True)",
            "binary_cross_entropy_with_logits(x, sign, None, weight, 2)",
        )
    ]


@pytest.mark.parametrize(
    ("expression", "phrase"),
    [
        ("soft_margin_loss(x, sign, reduction='abc')", "is not a valid value for reduction"),
        ("soft_margin_loss(x, y)", "not differentiable with respect to argument 'target'"),
        ("soft_margin_loss(x, sign[:, :3])", "must match the size of tensor b"),
        ("soft_margin_loss(x.long(), sign.long())", "can't be cast to the desired output type Long"),
        ("margin_ranking_loss(x, y, sign[0])", "All input tensors should have same dimension"),
        ("multi_margin_loss(x, labels, 3)", "only p == 1 and p == 2 supported"),
        ("multi_margin_loss(x, labels + 1)", "target out of range"),
        ("multi_margin_loss(x, labels.int())", "expected scalar type Long but found Int"),
        ("multi_margin_loss(x, labels[:2])", "target tensor should be 1-D"),
        ("multi_margin_loss(x, labels, weight=sign)", "weight must be one-dimensional"),
        ("multi_margin_loss(x, labels, weight=weight[:2])", "inconsistent weight size"),
        ("multi_margin_loss(x[:, :0], labels)", "Expected non-empty vector or matrix"),
        ("multi_margin_loss(x.half(), labels)", "not implemented for 'Half'"),
        ("multilabel_margin_loss(x, many[0])", "inconsistent target size"),
        ("multilabel_margin_loss(x, many + 1)", "is out of range"),
        ("multilabel_soft_margin_loss(x[0, 0], sign[0, 0])", "Dimension"),
        ("cosine_embedding_loss(x, y, sign)", "multi-target not supported"),
        ("cosine_embedding_loss(x[0], y, sign[0])", "1D target tensor expects 2D input tensors"),
        ("triplet_margin_loss(x, y, z, margin=-1.0)", "margin must be greater than 0"),
        ("triplet_margin_loss(x[0], y, z)", "expected to have the same number of dimensions"),
        ("triplet_margin_with_distance_loss(x, y, z[0])", "expected to have the same number of dimensions"),
        ("gaussian_nll_loss(x, y, z)", "var has negative entry/entries"),
        ("gaussian_nll_loss(x, y, -1.0)", "var has negative entry/entries"),
        ("gaussian_nll_loss(x, y, weight)", "var is of incorrect size"),
        ("gaussian_nll_loss(x, y, 1.0, reduction='abc')", "abc is not valid"),
    ],
)
@differential
def test_wrong_input(T: Any, expression: str, phrase: str) -> Any:
    return outcome(lambda: eval(f"F.{expression}", _names(T)), phrase)


@differential
def test_batches_without_rows(T: Any) -> Any:
    x = T.zeros(0, 3)
    many = T.nn.functional.multilabel_margin_loss(x, T.zeros(0, 3, dtype=T.int64), reduction="none")
    # Of the mean over nothing PyTorch returns what the memory held: only its shape is compared.
    return T.nn.functional.multi_margin_loss(x, T.zeros(0, dtype=T.int64)).shape, many


@pytest.mark.parametrize("flags", [(True, None), (False, None), (None, False), (True, True), (False, True)])
@differential(tolerance=1e-5)
def test_old_flags(T: Any, flags: Any) -> Any:
    names = _names(T)
    words = {"size_average": flags[0], "reduce": flags[1]}
    x, y, sign = names["x"], names["y"], names["sign"]
    F = T.nn.functional
    return [
        warned(lambda: F.soft_margin_loss(x, sign, **words), "size_average and reduce args will be deprecated"),
        warned(lambda: F.margin_ranking_loss(x, y, sign, **words), "please use reduction="),
        warned(lambda: F.poisson_nll_loss(x, y, **words), "please use reduction="),
        warned(lambda: F.hinge_embedding_loss(x, sign, **words), "please use reduction="),
    ]


@differential
def test_meta(T: Any) -> Any:
    F = T.nn.functional
    x, labels = T.empty(3, 4, device="meta"), T.empty(3, dtype=T.int64, device="meta")
    return [
        F.soft_margin_loss(x, x, reduction="none"),
        F.multi_margin_loss(x, labels, reduction="none"),
        F.multilabel_margin_loss(x, x.long(), reduction="none"),
        F.triplet_margin_loss(x, x, x),
        F.poisson_nll_loss(x, x, reduction="none"),
    ]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@differential
def test_scores_that_are_nan_violate_no_margin(T: Any, reduction: str) -> Any:
    F = T.nn.functional
    nan = float("nan")
    seen = []
    for loss in (
        lambda x: F.multi_margin_loss(x, T.tensor([0, 1, 1]), reduction=reduction),
        lambda x: F.multi_margin_loss(x, T.tensor([0, 1, 1]), 2, weight=T.tensor([1.0, 2.0, 3.0]), reduction=reduction),
        lambda x: F.multilabel_margin_loss(x, T.tensor([[0, 1, -1], [2, -1, 0], [1, 0, -1]]), reduction=reduction),
    ):
        x = T.tensor([[1.0, nan, -2.0], [3.0, 4.0, 0.5], [nan, 0.0, 1.0]], requires_grad=True)
        result = loss(x)
        seen.append((result, T.autograd.grad(result.sum(), x)[0] + 0.0))
    return seen


@pytest.mark.parametrize("target", [100.0, -0.1, float("nan")])
@differential
def test_targets_of_binary_cross_entropy_are_probabilities(T: Any, target: float) -> Any:
    x, y = T.tensor([0.5, 0.2]), T.tensor([0.5, target])
    loss = T.nn.functional.binary_cross_entropy
    return outcome(lambda: loss(x, y), "all elements of target should be between 0 and 1"), loss(x, x)


@differential
def test_infinite_scores_of_labels_are_left_out(T: Any) -> Any:
    x = T.tensor([[1.0, float("inf"), -2.0], [3.0, 4.0, -float("inf")]], requires_grad=True)
    loss = T.nn.functional.multilabel_margin_loss(x, T.tensor([[1, -1, 0], [2, 0, -1]]), reduction="none")
    return loss, T.autograd.grad(loss.sum(), x)


@differential
def test_classes_are_the_inputs_last_dimension(T: Any) -> Any:
    """The target may have more dimensions."""
    input = T.tensor([-2.72, -1.769, 0.5, 1.25, -0.25], requires_grad=True)
    target = T.tensor([[0.25, 1.0, 0.0, 0.75, 0.5]])
    loss = T.nn.functional.multilabel_soft_margin_loss(input, target, weight=T.arange(5.0))
    loss.backward()
    return loss, input.grad
