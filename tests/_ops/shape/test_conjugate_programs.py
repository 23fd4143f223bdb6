"""Random programs over views that remember a sign: made, chained, changed in place and differentiated under both."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import compare

Step = Callable[[Any, Any], Any]

VIEWS: dict[str, Step] = {
    "conj": lambda T, x: x.conj(),
    "neg_view": lambda T, x: T._neg_view(x),
    "real": lambda T, x: x.real,
    "imag": lambda T, x: x.imag,
    "mH": lambda T, x: x.mH,
    "mT": lambda T, x: x.mT,
    "first": lambda T, x: x[0],
    "last_column": lambda T, x: x[..., -1],
    "every_other": lambda T, x: x[..., ::2],
    "flat": lambda T, x: x.reshape(-1),
    "viewed": lambda T, x: x.view(-1),
    "pairs": lambda T, x: T.view_as_real(x),
    "numbers": lambda T, x: T.view_as_complex(x),
    "expanded": lambda T, x: x.expand(2, *x.shape),
    "alias": lambda T, x: x.view_as(x),
    "contiguous": lambda T, x: x.contiguous(),
    "to": lambda T, x: x.to(x.dtype),
    "diagonal": lambda T, x: x.diagonal(0, -2, -1),
    "unsqueezed": lambda T, x: x.unsqueeze(0),
    "cut": lambda T, x: x.chunk(2, -1)[0],
}
COPIES: dict[str, Step] = {
    "clone": lambda T, x: x.clone(),
    "resolve_conj": lambda T, x: x.resolve_conj(),
    "resolve_neg": lambda T, x: x.resolve_neg(),
    "conj_physical": lambda T, x: x.conj_physical(),
    "neg": lambda T, x: -x,
    "double": lambda T, x: x * 2,
    "plus_own_conjugate": lambda T, x: x + x.conj(),
    "square": lambda T, x: x * x,
    "flipped": lambda T, x: x.flip(-1),
    "stacked": lambda T, x: T.stack([x, x.conj()]),
    "picked": lambda T, x: x[[0]],
    "size": lambda T, x: x.abs(),
    "total": lambda T, x: x.sum(-1),
    "product": lambda T, x: x @ x.mH,
    "wider": lambda T, x: x.to(T.complex128),
}
CHANGES: dict[str, Step] = {
    "scale": lambda T, x: x.mul_(2),
    "turn": lambda T, x: x.mul_(1j),
    "shift": lambda T, x: x.add_(0.5),
    "add_own_conjugate": lambda T, x: x.add_(x.conj()),
    "square_in_place": lambda T, x: x.mul_(x),
    "conjugate_in_place": lambda T, x: x.conj_physical_(),
    "negate_in_place": lambda T, x: x.neg_(),
    "copy_own_conjugate": lambda T, x: x.copy_(x.conj()),
    "copy_negative": lambda T, x: x.copy_(T._neg_view(x)),
    "copy_transposed": lambda T, x: x.copy_(x.mT.clone()),
    "fill": lambda T, x: x.fill_(1.5),
    "fill_complex": lambda T, x: x.fill_(1 + 2j),
    "zero": lambda T, x: x.zero_(),
    "set_first": lambda T, x: x.__setitem__(0, 3.0),
    "set_column": lambda T, x: x.__setitem__((..., -1), x[..., 0] * 2),
    "set_masked": lambda T, x: x.__setitem__(x.abs() > 1, 0.25),
    "set_picked": lambda T, x: x.__setitem__([0], x[[-1]].clone()),
    "masked_fill": lambda T, x: x.masked_fill_(x.abs() > 2, 1),
    "exp": lambda T, x: x.exp_(),
    "set_real": lambda T, x: setattr(x, "real", x.imag * 2),
    "set_imag": lambda T, x: setattr(x, "imag", x.real + 1),
    "add_out": lambda T, x: T.add(x.detach(), 1, out=x),
}
OPERATIONS = {**VIEWS, **COPIES, **CHANGES}


def _program(seed: int) -> list[tuple[str, int]]:
    """Names of operations and which of the tensors so far each is applied to."""
    draw = random.Random(seed)
    steps = []
    for length in range(draw.randint(4, 14)):
        names = draw.choices((VIEWS, COPIES, CHANGES), (6, 1, 4))[0]
        steps.append((draw.choice(sorted(names)), max(0, length - int(draw.expovariate(0.5)))))
    return steps


def _observed(T: Any, x: Any) -> Any:
    """What can be said of a tensor, the signs in its memory included."""
    base = x._base
    return {
        "signs": (x.is_conj(), x.is_neg()),
        "values": x.detach().tolist(),
        "dtype": str(x.dtype),
        "version": x._version,
        "view": x._is_view(),
        "offset": x.storage_offset(),
        "needs": x.requires_grad,
        "base": None if base is None else tuple(base.shape),
    }


def _gradient(T: Any, x: Any, leaf: Any) -> Any:
    try:
        total = (x * x.detach()).sum()
        total = total.real if total.is_complex() else total
        return T.autograd.grad(total, leaf, retain_graph=True)[0].resolve_conj().resolve_neg().contiguous()
    except RuntimeError:  # a view of several that was changed, a saved tensor that was changed, ...
        return "error"


def _run(T: Any, program: list[tuple[str, int]], dtype: str, recorded: bool) -> Any:
    numbers = T.tensor(
        [[1 + 2j, 3 - 4j, -0.5 + 0.25j], [5j, 6.0, -1 - 1j], [0.5, -2j, 2.5 + 1.5j]], dtype=getattr(T, dtype)
    )
    leaf = numbers.requires_grad_(recorded)
    tensors = [leaf * 1]
    notes: list[Any] = []
    for name, place in program:
        x = tensors[min(place, len(tensors) - 1)]
        try:
            result = OPERATIONS[name](T, x)
        except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
            notes.append((name, "error", isinstance(error, RuntimeError)))
        else:
            notes.append(name)
            if isinstance(result, type(leaf)) and name not in CHANGES:
                tensors.append(result)
    observations = [_observed(T, each) for each in tensors]
    gradients = [_gradient(T, each, leaf) for each in tensors if each.requires_grad]
    return notes, observations, gradients


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("block", range(5))
def test_random_programs(dtype: str, recorded: bool, block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        compare(_run, _program(seed), dtype, recorded, tolerance=1e-4)
