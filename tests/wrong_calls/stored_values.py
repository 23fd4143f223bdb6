"""Numbers stored in tensors of each dtype: out of range, cut off, without an end, of another kind.

Every way to store a number is tried with every number and dtype; both libraries must refuse it, or store the same.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import torch as pytorch

import flambeau

KNOWN = Path(__file__).parent / "known_stored_values.json"

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip

_NUMBERS: dict[str, Any] = {
    "2**63": 2**63, "2**64": 2**64, "-2**63 - 1": -(2**63) - 1, "nan": float("nan"), "inf": float("inf"),
    "-inf": -float("inf"), "int64(300)": numpy.int64(300), "float32(-1)": numpy.float32(-1),
    **{repr(each): each for each in (
        -1.0, -1, 256, 255.5, 127.5, 300.5, -129, -300, 2**31, 2**40, -(2**40), 1e5, -1e5, 1e39, -1e39, 1e300, 1j,
        1 + 0j, 2 + 1j, 1e39j, True, 0.5, -0.5,
    )},
}  # fmt: skip
_TENSORS: dict[str, Callable[[Any], Any]] = {
    "tensor(-1)": lambda T: T.tensor(-1),
    "tensor(300)": lambda T: T.tensor(300),
    "tensor(-1.5)": lambda T: T.tensor(-1.5),
    "tensor(1j)": lambda T: T.tensor(1j),
    "tensor(1e39)": lambda T: T.tensor(1e39, dtype=T.float64),
}
NUMBERS = (*_NUMBERS, *_TENSORS)


def _mask(T: Any) -> Any:
    return T.tensor([True, False, True, False])


def _stored(T: Any, x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


Way = Callable[[Any, Any, Any], Any]
"""Called with the library, a tensor of zeros, and the number."""

WAYS: dict[str, Way] = {
    "x[0] =": lambda T, x, v: _stored(T, x, 0, v),
    "x[1:3] =": lambda T, x, v: _stored(T, x, slice(1, 3), v),
    "x[mask] =": lambda T, x, v: _stored(T, x, _mask(T), v),
    "x[tensor] =": lambda T, x, v: _stored(T, x, T.tensor([1, 2]), v),
    "x[list] =": lambda T, x, v: _stored(T, x, [1, 2], v),
    "fill_": lambda T, x, v: x.fill_(v),
    "fill": lambda T, x, v: T.fill(x, v),
    "full": lambda T, x, v: T.full((2,), v, dtype=x.dtype),
    "full_like": lambda T, x, v: T.full_like(x, v),
    "new_full": lambda T, x, v: x.new_full((2,), v),
    "tensor": lambda T, x, v: T.tensor(v, dtype=x.dtype),
    "tensor of a list": lambda T, x, v: T.tensor([v, v], dtype=x.dtype),
    "scalar_tensor": lambda T, x, v: T.scalar_tensor(v, dtype=x.dtype),
    "index_fill": lambda T, x, v: T.index_fill(x, 0, T.tensor([0]), v),
    "masked_fill": lambda T, x, v: x.masked_fill(_mask(T), v),
    "scatter": lambda T, x, v: T.scatter(x, 0, T.tensor([0]), v),
    "scatter with add": lambda T, x, v: x.scatter_(0, T.tensor([0]), v, reduce="add"),
    "fill_diagonal_": lambda T, x, v: x.reshape(2, 2).fill_diagonal_(v),
    "clamp(min)": lambda T, x, v: T.clamp(x, min=v),
    "clamp(max)": lambda T, x, v: T.clamp(x, max=v),
    "clamp_": lambda T, x, v: x.clamp_(v, v),
    "where(_, x, number)": lambda T, x, v: T.where(T.zeros(4, dtype=T.bool), x, v),
    "where(_, number, x)": lambda T, x, v: T.where(T.zeros(4, dtype=T.bool), v, x),
    "pad": lambda T, x, v: T.nn.functional.pad(x, (1, 1), value=v),
    "constant_pad_nd": lambda T, x, v: T.constant_pad_nd(x, (1, 1), v),
    "add with alpha": lambda T, x, v: T.add(x, x, alpha=v),
    "index_add with alpha": lambda T, x, v: T.index_add(x, 0, T.tensor([0]), x[:1], alpha=v),
    "addcmul": lambda T, x, v: T.addcmul(x, x, x, value=v),
    "threshold": lambda T, x, v: T.threshold(x, v, v),
    "searchsorted": lambda T, x, v: T.searchsorted(x, v),
}


def _outcome(library: Any, way: Way, dtype: str, number: str) -> tuple[str, Any]:
    try:
        x = library.zeros(4).to(getattr(library, dtype))
        value = _TENSORS[number](library) if number in _TENSORS else _NUMBERS[number]
        result = way(library, x, value)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    dtype = str(result.dtype)
    if dtype in ("torch.bfloat16", "torch.complex32"):
        result = result.to(library.float32 if dtype == "torch.bfloat16" else library.complex64)
    return "ok", (dtype, tuple(result.shape), repr(result.numpy().tolist()).replace("-nan", "nan"))


def differences(ways: tuple[str, ...] = tuple(WAYS)) -> Iterator[tuple[str, str, str, str | None]]:
    """(way, number, dtype, what differs or None); what PyTorch has no kernel for is not compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ways:
            for number in NUMBERS:
                for dtype in DTYPES:
                    expected = _outcome(pytorch, WAYS[name], dtype, number)
                    if expected[0] == "error" and "not implemented for" in expected[1]:
                        continue
                    actual = _outcome(flambeau, WAYS[name], dtype, number)
                    same = expected[0] == actual[0] and (expected[0] == "error" or expected == actual)
                    yield name, number, dtype, None if same else f"{actual[1]}, in PyTorch {expected[1]}"


def known() -> dict[str, dict[str, list[str]]]:
    """way -> number -> dtypes that are known to differ: the checked-in list, which may only become shorter."""
    return json.loads(KNOWN.read_text())  # type: ignore[no-any-return]


def write_known() -> None:
    """The list as it is now: `python -c "from tests.wrong_calls.stored_values import *; write_known()"`."""
    found: dict[str, dict[str, list[str]]] = {}
    for way, number, dtype, difference in differences():
        if difference is not None:
            found.setdefault(way, {}).setdefault(number, []).append(dtype)
    rows = [f" {json.dumps(way)}: {json.dumps(numbers)}" for way, numbers in found.items()]
    KNOWN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
