"""What is wrong with a call: one argument replaced by a value of another kind, size or sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PLAIN: dict[str, Any] = {
    "str": "a",
    "none": None,
    "list": ["a"],
    "dict": {},
    "object": object(),
    "bytes": b"a",
    "bool": True,
    "int": 3,
    "negative": -7,
    "huge": 10**15,
    "beyond int64": 2**63,
    "float": 1.5,
    "nan": float("nan"),
    "complex": 1j,
    "empty": (),
}
"""Values that stand for any argument."""

_DTYPES = ("bool", "int64", "float64", "complex64")
_ELEMENTS = ("str", "none", "negative", "huge", "float")


_COUNTS = ("num_layers", "num_encoder_layers", "num_decoder_layers", "n_power_iterations")
"""Parameters for which both libraries do something so many times: huge ones never end."""


def kinds(name: str, value: Any, library: Any) -> Iterator[str]:
    """The names of what can be put in place of the argument `value`."""
    yield from (kind for kind in PLAIN if name not in _COUNTS or kind not in ("huge", "beyond int64"))
    if isinstance(value, library.Tensor):
        yield from ("rank 0", "one rank more", "flat", "no elements", "one element more")
        yield from (f"as {name}" for name in _DTYPES)
        return
    yield "tensor"
    if isinstance(value, (tuple, list)):
        yield from ("longer", "shorter")
        if value:
            yield from (f"element {name}" for name in _ELEMENTS)


def wrong(kind: str, value: Any, library: Any) -> Any:
    """What is put in place of `value`."""
    if kind in PLAIN:
        return PLAIN[kind]
    if kind == "tensor":
        return library.ones(2, 3)
    if isinstance(value, library.Tensor):
        return _tensor(kind, value.detach(), library)
    if kind == "longer":
        return type(value)([*value, value[-1] if value else 1])
    if kind == "shorter":
        return type(value)(value[:-1])
    return type(value)([*value[:-1], PLAIN[kind.removeprefix("element ")]])


def _tensor(kind: str, value: Any, library: Any) -> Any:
    if kind == "rank 0":
        return library.ones((), dtype=value.dtype)
    if kind == "one rank more":
        return value[None]
    if kind == "flat":
        return value.flatten() if value.dim() != 1 else value[:, None]
    if kind == "no elements":
        return library.zeros(0, dtype=value.dtype)
    if kind == "one element more":
        return library.ones((*value.shape[:-1], (*value.shape, 1)[-1 if not value.dim() else value.dim() - 1] + 1)).to(
            value.dtype
        )
    return value.to(getattr(library, kind.removeprefix("as ")))
