"""What docstrings say of errors is true: a wrong call of each function raises that error."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import flambeau as torch
from flambeau._dispatch.public.docstrings.raised_docs import SENTENCES
from tests._dispatch.public.test_documentation import public_functions

A, B, M, V = torch.ones(2), torch.ones(3), torch.ones(2, 3), torch.arange(6)
LONG = torch.tensor([[9]])
NAN = float("nan")

WRONG: dict[str, dict[str, str]] = {
    "the shapes cannot be broadcast together": {
        "": "f(A, B)", "gcd": "f(V, V[:5])", "lcm": "f(V, V[:5])", "bitwise": "f(V, V[:5])", "lerp": "f(A, B, 0.5)",
        "addc": "f(A, B, B)", "where": "f(A > 0, A, B)", "masked_fill": "f(A, B > 0, 1.0)",
    },
    "`input` has not as many columns as `mat2` has rows, or one of them is no matrix": {"": "f(M, M)"},
    "`mat1` has not as many columns as `mat2` has rows, or `input` cannot be broadcast to the product": {
        "": "f(M, M, M)",
    },
    "the inner sizes of the matrices differ": {"": "f(M[None], M[None])"},
    "the inner sizes of the matrices differ, or `input` cannot be broadcast to the result": {
        "": "f(torch.ones(1, 2, 3), M[None], M[None])", "addbmm": "f(M, M[None], M[None])",
    },
    "the vector has not as many elements as the matrix has columns": {"": "f(M, A)", "addmv": "f(A, M, A)"},
    "the tensors are not vectors of the same length": {"": "f(A, B)"},
    "the last dimensions differ": {"": "f(A, B)"},
    "the dimensions that are summed over have other sizes": {"": "f(M, M, 1)"},
    "the equation and the operands do not fit": {"": "f('ij->k', M)"},
    "the vectors along `dim` do not have three elements": {"": "f(A, A, dim=0)"},
    "the shapes differ in another dimension than the joined one": {
        "": "f([M, torch.ones(4, 5)])", "hstack": "f([M, torch.ones(5, 4)])", "dstack": "f([M, torch.ones(5, 4)])",
        "column_stack": "f([M, torch.ones(5, 4)])",
    },
    "the tensors do not all have the same shape, or there are none": {"": "f([A, B])"},
    "the new shape has another number of elements": {"": "f(M, (4,))", "unflatten": "f(M, 1, (2, 2))"},
    "the shape cannot be had without a copy, or has another number of elements": {"": "f(M.t(), 6)"},
    "a size that is not 1 would change": {"": "f(M, (2, 5))"},
    "the sizes do not add up to the size of `dim`": {"": "f(A, [1, 2])"},
    "the dimensions are not each given once": {"": "f(M, (0, 0))"},
    "`start` and `length` reach beyond the dimension": {"": "f(A, 0, 1, 5)"},
    "a size is negative": {
        "": "f(-1)", "full": "f((-1,), 0.0)", "new_": "f(A, (-1,))", "new_full": "f(A, (-1,), 0.0)",
    },
    "`steps` is negative": {"": "f(0, 1, -1)"},
    "the step is zero, or leads away from the end": {"": "f(0, 5, -1)"},
    "`dim` is not a dimension of the tensor": {
        "": "f(M, dim=7)", "cum": "f(M, 7)", "quantile": "f(M, 0.5, dim=7)", "nanquantile": "f(M, 0.5, dim=7)",
        "kthvalue": "f(M, 1, dim=7)", "topk": "f(M, 1, dim=7)", "chunk": "f(M, 2, dim=7)", "split": "f(M, 1, dim=7)",
        "tensor_split": "f(M, 2, dim=7)", "select": "f(M, 7, 0)", "flip": "f(M, (7,))",
        "index_select": "f(M, 7, torch.tensor([0]))", "index_add": "f(M, 7, torch.tensor([0]), M)",
        "index_copy": "f(M, 7, torch.tensor([0]), M)", "index_fill": "f(M, 7, torch.tensor([0]), 1.0)",
        "gather": "f(M, 7, LONG)", "scatter": "f(M, 7, LONG, M)", "scatter_reduce": "f(M, 7, LONG, M, 'sum')",
        "renorm": "f(M, 2, 7, 1.0)", "cosine_similarity": "f(M, M, dim=7)",
    },
    "`dim0` or `dim1` is not a dimension of the tensor": {"": "f(M, 0, 7)"},
    "an index is out of range": {
        "": "f(M, 0, torch.tensor([9]))", "take": "f(A, torch.tensor([9]))", "embedding": "f(torch.tensor([9]), M)",
        "index_put": "f(A, (torch.tensor([9]),), torch.ones(1))", "select": "f(M, 0, 9)",
        "index_select": "f(M, 0, torch.tensor([9]))", "gather": "f(M, 0, LONG)",
        "scatter": "f(M, 0, LONG, M)", "scatter_reduce": "f(M, 0, LONG, M, 'sum')",
        "index_add": "f(M, 0, torch.tensor([9]), M[:1])", "index_fill": "f(M, 0, torch.tensor([9]), 1.0)",
    },
    "`k` is larger than the dimension": {"": "f(A, 5)"},
    "a target is no class": {"": "f(M, torch.tensor([0, 9]))"},
    "a class is negative, or not below `num_classes`": {"": "f(torch.tensor([5]), 2)"},
    "`p` is not between 0 and 1": {
        "": "f(torch.ones(1, 2, 2, 2), 2.0, True)", "dropout3d": "f(torch.ones(1, 1, 2, 2, 2), 2.0)",
    },
    "a probability is negative or not finite, or more are drawn than there are without replacement": {
        "": "f(torch.tensor([-1.0, 2.0]), 1)",
    },
    "a probability is not between 0 and 1": {"": "f(torch.tensor([2.0]))", "bernoulli_": "f(torch.ones(2), 2.0)"},
    "`std` is negative": {"": "f(0.0, -1.0, (2,))", "normal_": "f(torch.ones(2), 0.0, -1.0)"},
    "both bounds are absent": {"": "f(A)"},
    "`n` is negative": {"": "f(-1)"},
    '`rounding_mode` is not None, "trunc" or "floor"': {"": "f(A, A, rounding_mode='up')"},
    '`reduction` is not "none", "mean" or "sum"': {
        "": "f(A, A, reduction='most')", "cross_entropy": "f(M, torch.tensor([0, 1]), reduction='most')",
        "nll_loss": "f(M, torch.tensor([0, 1]), reduction='most')",
        "binary_cross_entropy": "f(A, A, reduction='most')",
        "cosine_embedding_loss": "f(M, M, A, reduction='most')", "margin_ranking_loss": "f(A, A, A, reduction='most')",
        "multi_margin_loss": "f(M, torch.tensor([0, 1]), reduction='most')",
        "multilabel_margin_loss": "f(M, torch.zeros(2, 3, dtype=torch.long), reduction='most')",
        "triplet_margin_loss": "f(M, M, M, reduction='most')", "gaussian_nll_loss": "f(A, A, A, reduction='most')",
        "ctc_loss": "f(torch.zeros(3, 1, 2), torch.ones(1, 1, dtype=torch.long), (3,), (1,), reduction='most')",
    },
    "`input` and `weight` have other numbers of features": {
        "": "f(M, M.t())", "bilinear": "f(M, M, torch.ones(1, 2, 2))",
    },
    "`input` has another number of channels than `weight` takes, or the window is larger than it": {
        f"conv{n}d": f"f(torch.ones(1, 2, {'4, ' * n}), torch.ones(3, 5, {'1, ' * n}))" for n in (1, 2, 3)
    },
    "`input` has another number of channels than `weight` takes": {
        f"conv_transpose{n}d": f"f(torch.ones(1, 2, {'4, ' * n}), torch.ones(3, 5, {'1, ' * n}))" for n in (1, 2, 3)
    },
    "the window is larger than the padded input, or the padding than half of the window": {
        f"_pool{n}d": f"f(torch.ones(1, 2, {'4, ' * n}), 7)" for n in (1, 2, 3)
    },
    "the last dimensions of `input` are not `normalized_shape`": {"": "f(M, (4,))"},
    "the channels do not divide into `num_groups`": {"": "f(torch.ones(2, 3, 4), 2)"},
    "in training there is one value for each channel": {"": "f(torch.ones(1, 3), None, None, training=True)"},
    "`weight` is neither one number nor one for each channel": {"": "f(M, torch.ones(7))"},
    "the channels do not divide into squares of `upscale_factor`": {"": "f(torch.ones(1, 3, 2, 2), 2)"},
    "the shapes of query, key and value do not fit": {
        "": "f(torch.ones(1, 2, 3), torch.ones(1, 2, 4), torch.ones(1, 2, 4))",
    },
    "a matrix is not positive-definite": {"": "f(-torch.eye(2))"},
    "a matrix is singular": {"": "f(torch.zeros(2, 2))", "solve": "f(torch.zeros(2, 2), A)"},
    "the matrices are not square": {"": "f(M)", "matrix_power": "f(M, 2)"},
}  # fmt: skip
"""For each error calls that end in it: the one whose key is the longest part of a function's name, "" for the rest."""


def claims() -> list[tuple[str, Any, str, str]]:
    """Functions with the errors that their docstrings name: name, function, type, sentence."""
    known = {each.partition(": ")[2] for each in SENTENCES}
    found = []
    for name, function in public_functions():
        section = re.search(r"^Raises:\n((?: {4}.*\n?)+)", inspect.cleandoc(function.__doc__ or ""), re.MULTILINE)
        for line in section[1].splitlines() if section else ():
            error, _, sentence = line.strip().rstrip(".").partition(": ")
            if sentence in known:
                found.append((name, function, error, sentence))
    return found


CLAIMS = claims()


@pytest.mark.parametrize("sentence", dict.fromkeys(each.partition(": ")[2] for each in SENTENCES))
def test_errors_that_docstrings_name(sentence: str) -> None:
    untrue, users = [], 0
    for name, function, error, said in CLAIMS:
        if said == sentence:
            users += 1
            last = name.rpartition(".")[2]
            key = max((each for each in WRONG[sentence] if each in last), key=len)
            scope = {**globals(), "f": function, "M": M.clone(), "A": A.clone(), "V": V.clone()}
            wanted = torch.linalg.LinAlgError if "LinAlgError" in error else getattr(__import__("builtins"), error)
            try:
                eval(WRONG[sentence][key], scope)
            except wanted:
                continue
            except Exception as other:
                untrue.append(f"{name}: {WRONG[sentence][key]} raises {type(other).__name__}: {str(other)[:100]}")
            else:
                untrue.append(f"{name}: {WRONG[sentence][key]} raises nothing")
    assert users
    assert not untrue, "\n".join(untrue)
