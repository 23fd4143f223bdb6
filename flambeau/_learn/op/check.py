"""Checks an answer to the lesson about operations."""

from __future__ import annotations

import math
from typing import Any

import flambeau

from ..._dispatch.op import OPS
from ...func import vmap
from ..checking import Steps, Wrong

STEPS = Steps()
torch: Any = flambeau
_ON_ARRAYS = (
    "The body gets a whole NumPy array, not one number and not a tensor: use np.sqrt in place of math.sqrt and of "
    "torch.sqrt, and np.where in place of `if`."
)


def _expected(values: list[float]) -> list[float]:
    return [(x + math.sqrt(x * x + 4)) / 2 for x in values]


@STEPS.step("the engine knows the op")
def registered(answer: Any) -> None:
    """The op is in the engine's table."""
    if "squareplus" not in OPS or not hasattr(torch, "squareplus"):
        raise Wrong('The engine knows no op "squareplus": call unary("squareplus", body, ...) when the file is run.')


@STEPS.step("its values are right", _ON_ARRAYS)
def values(answer: Any) -> None:
    """The values on a few floats."""
    given = [-3.0, -0.5, 0.0, 1.0, 4.0]
    x = torch.tensor(given, dtype=torch.float64)
    result = torch.squareplus(x)
    if not isinstance(result, torch.Tensor) or result.shape != x.shape:
        raise Wrong(f"Five numbers must become five numbers, but the result is {result!r}.")
    if x.tolist() != given:
        raise Wrong(
            "The body changes its argument: `x += ...` and `out=x` write into the caller's tensor. Make a new array."
        )
    for number, got, right in zip(given, result.tolist(), _expected(given), strict=True):
        if not math.isclose(got, right, abs_tol=1e-12):
            twice = (
                " That is twice as much: the sum as a whole is divided by 2." if math.isclose(got, 2 * right) else ""
            )
            raise Wrong(f"squareplus({number}) is {right:.4f}, your body gives {got:.4f}.{twice}")


@STEPS.step("integers become floats")
def integers(answer: Any) -> None:
    """The dtype rule."""
    result = torch.squareplus(torch.tensor([0, 1, 2]))
    if result.dtype is not torch.float32:
        raise Wrong(
            f"squareplus of integers has dtype {result.dtype}: no integer is (1 + sqrt(5)) / 2. The rule FLOATING "
            "makes the "
            "default float of integers before the body sees them; SAME keeps their dtype."
        )


@STEPS.step("the method, squareplus_ and out= follow from the record", _ON_ARRAYS)
def forms(answer: Any) -> None:
    """What the engine makes of the record."""
    x = torch.tensor([-1.0, 0.0, 2.0])
    result, out = torch.squareplus(x), torch.empty(3)
    torch.squareplus(x, out=out)
    if (
        not torch.equal(out, result)
        or not torch.equal(x.squareplus(), result)
        or not torch.equal(x.squareplus_(), result)
    ):
        raise Wrong(
            "The method, the in-place form and out= should give what the function gives, and do not: is `name` right?"
        )
    if torch.squareplus(torch.ones(2, 3, device="meta")).shape != (2, 3):
        raise Wrong("On the meta device, which has shapes and no data, the result has the wrong shape.")


@STEPS.step("a million elements run as generated machine code, with the same values", _ON_ARRAYS)
def large(answer: Any) -> None:
    """The body is traced once, and compiled."""
    x = torch.linspace(-4, 4, 1_000_000, dtype=torch.float64)
    reference = (x + (x * x + 4).sqrt()) / 2
    if not torch.allclose(torch.squareplus(x), reference):
        raise Wrong(
            "On a large tensor the values differ from those on a small one. Large ones run code that the engine "
            "writes by "
            "calling the body once with symbols: the body must not decide by values or sizes."
        )


@STEPS.step("vmap and compile take it as they take every op")
def transforms(answer: Any) -> None:
    """Transforms."""
    x = torch.randn(3, 4)
    if not torch.equal(vmap(torch.squareplus)(x), torch.squareplus(x)):
        raise Wrong("vmap gives other values than the plain call: does the body look at the shape of its argument?")
    compiled = torch.compile(lambda t: torch.squareplus(t * 2))
    if any(not torch.allclose(compiled(x), torch.squareplus(x * 2)) for _ in range(5)):
        raise Wrong("A compiled function gives other values than the plain call: does the body keep state?")
