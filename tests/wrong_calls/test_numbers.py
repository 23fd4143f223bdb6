"""Numbers in other forms, a part of them in every run: no difference that is not on the list, which only shrinks."""

from __future__ import annotations

import warnings

import numpy
import pytest

import flambeau as torch

from .numbers import found, known

_EVERY = 12


def test_numbers_in_other_forms_are_taken_and_refused_as_pytorch_does() -> None:
    listed = known()
    seen: dict[tuple[str, str, str], str | None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, argument, form, difference in found(every=_EVERY):
            seen[function, argument, form] = seen.get((function, argument, form)) or difference
    assert len(seen) > 1000, "hardly anything was run"
    new = [
        f"{function} | {argument} | {form} | {difference}"
        for (function, argument, form), difference in seen.items()
        if difference is not None and form not in listed.get(function, {}).get(argument, ())
    ]
    assert not new, "\n".join(new)
    old = [
        f"{function} | {argument} | {form}"
        for (function, argument, form), difference in seen.items()
        if difference is None and form in listed.get(function, {}).get(argument, ())
    ]
    assert not old, "listed, but no longer so:\n" + "\n".join(old)


@pytest.mark.parametrize("half", [torch.tensor(0.5), numpy.float32(0.5), torch.tensor(0.5, dtype=torch.float64)])
def test_a_number_in_a_tensor_is_that_number(half: object) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    square = torch.ones(2, 2)
    assert torch.equal(torch.addmm(square, square, square, beta=half), torch.full((2, 2), 2.5))
    assert torch.equal(torch.celu(-x, half), torch.celu(-x, 0.5))
    assert torch.celu(x, half).dtype is torch.float32
    assert torch.equal(torch.nn.functional.normalize(x, half), torch.nn.functional.normalize(x, 0.5))
    mean = torch.zeros(3)
    torch.nn.functional.batch_norm(x, mean, torch.ones(3), training=True, momentum=half)
    assert torch.equal(mean, x.mean(0) / 2)


def test_a_dimension_in_a_tensor_beside_keepdim_is_no_operand() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    values, indices = x.max(torch.tensor(1), True)
    assert values.tolist() == [[2.0], [5.0]]
    assert indices.tolist() == [[2], [2]]


@pytest.mark.parametrize("number", [torch.tensor(0.5, requires_grad=True), numpy.array(0.5), torch.tensor([0.5])])
def test_what_is_no_number_is_refused(number: object) -> None:
    square = torch.ones(2, 2)
    with pytest.raises(TypeError, match="must be Number"):
        torch.addmm(square, square, square, beta=number)
    with pytest.raises(TypeError, match="must be float"):
        square.exponential_(number)
