"""Forms of functions that have no `out=`, or store in it otherwise than their other forms; operators never have it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.differential import differential, outcome, warned

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"
)  # fmt: skip
OPERATORS = [
    *(f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r", "i")),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__matmul__", "__rmatmul__", "__rdiv__"),
]


@differential
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_have_no_out(T: Any, name: str) -> Any:
    x, out = T.tensor([[5, 3], [2, 1]]), T.zeros(2, 2, dtype=T.int64)
    operator = getattr(x, name)
    return {
        "tensor": outcome(lambda: operator(T.ones(2, 2, dtype=T.int64), out=out) is NotImplemented),
        "number": outcome(lambda: operator(2, out=out) is NotImplemented),
        "not a tensor": outcome(lambda: operator(2, out=(out,)) is NotImplemented),
        "unchanged": (x, out),
    }


FORMS = [
    "isnan(x)", "isinf(x)", "isfinite(x)", "isreal(x)", "isposinf(x)", "relu(x)", "x.isnan()", "x.relu()",
    "prod(x)", "prod(x, 0)", "median(x)", "nanmedian(x)", "std(x)", "std(x, True)",
    "var(x)", "var(x, False)", "diff(x)", "diff(x, 0)", "diff(x, 2)", "nansum(x)", "nansum(x, 0)",
    "nanmean(x)", "nanmean(x, 1)", "mean(x)",
]  # fmt: skip


@differential(tolerance=1e-5)
@pytest.mark.parametrize("form", FORMS)
def test_forms_and_what_they_store(T: Any, form: str) -> Any:
    x = T.tensor([[0.5, 2.0, -1.0], [4.0, 0.25, 8.0]])
    shape = _called(T, form, x).shape
    found = {}
    for dtype in ("bool", "int32", "float32", "float64", "complex64"):
        out = T.zeros(shape, dtype=getattr(T, dtype))
        found[dtype] = outcome(lambda out=out: _called(T, form, x, out=out) is out), out.to(T.complex64).abs()
    return found


def _called(T: Any, form: str, x: Any, **out: Any) -> Any:
    text = form if form.startswith("x.") else f"T.{form}"
    separator = "" if text.endswith("()") else ", "
    return eval(f"{text[:-1]}{separator}**out)", {"T": T, "x": x, "out": out})


@differential
def test_functions_that_resize_out_without_a_word(T: Any) -> Any:
    x, batch = T.tensor([[0.5, 2.0], [4.0, 0.25]]), T.ones(3, 2, 2)
    calls = {
        "narrow_copy": lambda out: T.narrow_copy(x, 0, 0, 1, out=out),
        "addbmm": lambda out: T.addbmm(x, batch, batch, out=out),
        "logsigmoid": lambda out: T.nn.functional.logsigmoid(x, out=out),
        "mm": lambda out: T.mm(x, x, out=out),
    }
    found = {}
    for name, call in calls.items():
        out = T.ones(5)
        found[name] = warned(lambda call=call, out=out: call(out) is out), out
        found[f"{name}, dtype"] = outcome(lambda call=call: call(T.ones(5, dtype=T.float64)))
        found[f"{name}, empty"] = warned(lambda call=call: call(T.empty(0)))
    return found


@differential
@pytest.mark.parametrize("name", ["isnan", "isinf", "relu", "prod", "sum", "median", "nanmedian"])
def test_operators_under_their_own_names_have_out(T: Any, name: str) -> Any:
    x = T.tensor([[0.5, 2.0], [4.0, -0.25]])
    out = T.zeros_like(getattr(T, name)(x))
    operator = getattr(T.ops.aten, name).out
    return {
        "stored": outcome(lambda: operator(x, out=out) is out),
        "out": out,
        "other overload": outcome(lambda: getattr(T.ops.aten, name).default(x, out=out)),
        "no tensor": outcome(lambda: operator(3, out=out)),
        "dtype": outcome(lambda: operator(x, out=T.zeros(out.shape, dtype=T.int16))),
    }
