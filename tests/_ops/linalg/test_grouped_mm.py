"""`grouped_mm` against PyTorch: groups in batches, rows, columns and in the dimension that is summed over."""

from __future__ import annotations

from typing import Any

import pytest

from ...support.differential import differential, outcome


def _matrices(T: Any, *shapes: Any) -> list[Any]:
    return [T.linspace(0.0, 50.0, T.empty(each).numel()).sin().reshape(each).requires_grad_() for each in shapes]


@pytest.mark.parametrize(
    ("shapes", "ends"),
    [
        (((3, 4, 8), (3, 8, 16)), None),
        (((12, 8), (3, 8, 16)), [2, 2, 12]),
        (((3, 4, 8), (8, 16)), [4, 8, 16]),
        (((4, 16), (16, 8)), [4, 8, 16]),
    ],
)
@differential(tolerance=1e-5)
def test_groups(T: Any, shapes: Any, ends: Any) -> Any:
    a, b = _matrices(T, *shapes)
    offs = None if ends is None else T.tensor(ends, dtype=T.int32)
    result = T.nn.functional.grouped_mm(a, b, offs=offs)
    first = T.autograd.grad((result * result).sum(), [a, b], create_graph=True)
    half = T._grouped_mm(a.detach().bfloat16(), b.detach().bfloat16(), offs)
    return result, [each.detach() for each in first], half


def test_second_derivatives() -> None:
    import flambeau

    a, b = _matrices(flambeau, (3, 4), (2, 4, 2))
    offs = flambeau.tensor([1, 3], dtype=flambeau.int32)
    result = flambeau.nn.functional.grouped_mm(a, b, offs=offs)
    first = flambeau.autograd.grad((result * result).sum(), [a, b], create_graph=True)
    second = flambeau.autograd.grad(sum((each * each).sum() for each in first), [a, b])
    plain = flambeau.cat([a[:1] @ b[0], a[1:] @ b[1]])
    expected = flambeau.autograd.grad((plain * plain).sum(), [a, b], create_graph=True)
    expected = flambeau.autograd.grad(sum((each * each).sum() for each in expected), [a, b])
    for found, wanted in zip(second, expected, strict=True):
        flambeau.testing.assert_close(found, wanted)


@differential
def test_wrong_input(T: Any) -> Any:
    a, b, flat = _matrices(T, (3, 4, 8), (3, 8, 16), (12, 8))
    offs = T.tensor([2, 5, 12], dtype=T.int32)
    product = T.nn.functional.grouped_mm
    return [
        outcome(lambda: product(flat, b), "Have to provide offsets"),
        outcome(lambda: product(a, b, offs=offs), "no offset if both matrices are 3d"),
        outcome(lambda: product(flat, b, offs=offs.long()), "Offsets have to be int32"),
        outcome(lambda: product(flat, b, offs=offs[None]), "offs has to be 1D"),
        outcome(lambda: product(flat, b, offs=offs[:2]), "matrix batch sizes have to match"),
        outcome(lambda: product(a, b[:2]), "batched dimension has to match"),
        outcome(lambda: product(a, b[:, :4]), "contraction dimension"),
        outcome(lambda: product(a[None], b), "mat_a has to be 2 or 3d"),
        outcome(lambda: product(a.double(), b.double()), "Expected mat_a to be Float32"),
        outcome(lambda: product(a, b, bias=b.detach()), "Bias not supported yet"),
        outcome(lambda: product(a, b, out_dtype=T.bfloat16), "output dtype must match `mat_a` dtype"),
    ]
