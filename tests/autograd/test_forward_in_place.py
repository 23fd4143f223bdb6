"""Tangents of tensors that are changed in place: by every method that ends in an underscore, whole and in part."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential

pytorch = pytest.importorskip("torch")

_OTHER = "torch.tensor([0.3, -1.5, 0.2, 1.0])"
_ARGUMENTS = (
    *((), ("0.3",), ("2",), (_OTHER,), ("torch.tensor(0.4)",), ("torch.tensor([1, 2, 3, 1])",), ("0.1", "0.9")),
    *((_OTHER, "torch.tensor([2.0, 2, 3, 4])"), ("torch.tensor([True, False, True, True])", "2.0")),
    *(("0", "torch.tensor([1, 0, 2])", "3.0"), ("0", "torch.tensor([0, 1])", "torch.tensor([1.0, 5])"), ("0", "1")),
    ("torch.tensor([True, False, True, True])", "torch.tensor([9.0, 8, 7, 6])"),
)
_NAMES = sorted(
    name for name in dir(pytorch.Tensor) if name.endswith("_") and not name.startswith("_") and name != "apply_"
)
_ONLY_PYTORCH = "does not support it because it has not been implemented yet"
_NOTHING = "PyTorch leaves out tangents that are zero where the first operand has none"
_TIE = "at a bound PyTorch gives the tangent to the bound, and the gradient to the input"
_DIFFERENT = {
    ("copysign_", "other"): _NOTHING,
    ("nextafter_", "other"): _NOTHING,
    **{(name, form): _TIE for name in ("clamp_", "clip_") for form in ("whole", "part", "other")},
}


def _called(torch: Any, name: str, arguments: tuple[str, ...], form: str) -> Any:
    """Value and tangent after a call; an error's type and words."""
    forward_ad = torch.autograd.forward_ad
    torch.manual_seed(0)
    with forward_ad.dual_level():
        start = torch.tensor([0.5, -1.5, 2.0, 0.0])
        given = [eval(each, {"torch": torch}) for each in arguments]
        whole = start * 1
        changed = whole
        if form == "other":
            given = [forward_ad.make_dual(each, each * 0 + 7) if _is_float(torch, each) else each for each in given]
        else:
            whole = changed = forward_ad.make_dual(start, torch.tensor([1.0, 2.0, 3.0, 4.0])) * 1
        if form == "part":
            changed = whole[1:]
            given = [each[1:] if isinstance(each, torch.Tensor) and each.dim() else each for each in given]
        try:
            getattr(changed, name)(*given)
        except Exception as error:
            return type(error).__name__, str(error)
        primal, tangent = forward_ad.unpack_dual(whole)
        return primal.tolist(), None if tangent is None else tangent.tolist()


def _is_float(torch: Any, value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _numbers(value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, (list, tuple)) else (value,):
        yield from _numbers(each) if isinstance(each, (list, tuple)) else (each,)


def _agree(expected: Any, actual: Any) -> bool:
    pairs = list(zip(_numbers(expected), _numbers(actual), strict=False))
    return len(list(_numbers(expected))) == len(list(_numbers(actual))) and all(
        left is right or left == right or math.isclose(left, right, rel_tol=1e-4, abs_tol=1e-6) or left != left != right
        if isinstance(left, float) and isinstance(right, float)
        else left == right
        for left, right in pairs
    )


@pytest.mark.parametrize("form", ["whole", "part", "other"])
def test_each_method(form: str) -> None:
    wrong = []
    calls = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _NAMES:
            for arguments in _ARGUMENTS:
                expected = _called(pytorch, name, arguments, form)
                actual = _called(flambeau, name, arguments, form)
                if isinstance(expected[0], str) and (isinstance(actual[0], str) or _ONLY_PYTORCH in expected[1]):
                    continue
                calls += 1
                if (name, form) not in _DIFFERENT and not _agree(expected, actual):
                    wrong.append((name, arguments, expected, actual))
    assert wrong == []
    assert calls > 100


@differential
def test_parts_that_are_overwritten(torch: Any) -> Any:
    """What is written without a tangent has the tangent zero; the rest of the base keeps its own."""
    forward_ad = torch.autograd.forward_ad
    changes = [
        lambda y: y.__setitem__(slice(1, None), 0),
        lambda y: y.__setitem__(slice(1, None), torch.tensor(7.0)),
        lambda y: y.__setitem__(slice(1, None), torch.tensor([1.0, 2.0, 3.0])),
        lambda y: y.__setitem__(y > 0, 0.0),
        lambda y: y.__setitem__(torch.tensor([1, 3]), 5.0),
        lambda y: y[1:].zero_(),
        lambda y: y[::2].fill_(3),
        lambda y: y[1:].normal_(),
        lambda y: y[:2].bernoulli_(),
        lambda y: y.uniform_(),
        lambda y: torch.nn.init.ones_(y[1:]),
        lambda y: y.view(2, 2)[0].gt_(0),
        lambda y: torch._foreach_zero_([y]),
        lambda y: y.detach_(),
        lambda y: y[1:].fill_(forward_ad.make_dual(torch.tensor(2.0), torch.tensor(9.0))),
    ]
    seen = []
    for change in changes:
        with forward_ad.dual_level():
            y = forward_ad.make_dual(torch.arange(4.0), torch.tensor([1.0, 2.0, 3.0, 4.0])) * 1
            change(y)
            seen.append(forward_ad.unpack_dual(y).tangent)
    return seen


@differential
def test_derivatives_of_functions_that_overwrite(torch: Any) -> Any:
    def function(x: Any) -> Any:
        y = x * x
        y[1:].zero_()
        z = x.sin()
        z[0] = 1.0
        return y + z.clone().gt_(0) * x

    x = torch.tensor([0.5, -1.5, 2.0])
    return (
        *(torch.func.jvp(function, (x,), (torch.ones(3),)), torch.func.jacfwd(function)(x)),
        *(torch.func.jacrev(function)(x), torch.autograd.functional.jacobian(function, x)),
    )


@differential
def test_logit_outside_of_its_domain(torch: Any) -> Any:
    """In forward mode infinite slopes meet no zero."""
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.tensor([0.5, -1.5, 0.0, 1.0, 0.9]), torch.ones(5))
        return [forward_ad.unpack_dual(torch.logit(x, eps)).tangent for eps in (None, 0.3)]
