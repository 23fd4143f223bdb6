"""Calls of PyTorch's operators as text: one line of JSON for each, with its arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch as pytorch

FILE = Path(__file__).parent / "calls.jsonl"
_LITERAL = 24
"""Up to so many elements a tensor's values are written down; those of others are drawn."""


class Call(NamedTuple):
    """A call of an operator: its name as in `aten::add.Tensor`, its arguments by position and by name."""

    operator: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def overload(name: str) -> Any:
    """PyTorch's overload of a name such as `aten::add.Tensor`."""
    space, _, rest = name.partition("::")
    operator, _, which = rest.partition(".")
    return getattr(getattr(getattr(pytorch.ops, space), operator), which or "default")


def as_text(call: Call, literal: bool = False) -> str:
    """The line that stands for a call; `literal`: all values are written down."""
    args = [_encoded(each, literal) for each in call.args]
    kwargs = {name: _encoded(each, literal) for name, each in call.kwargs.items()}
    return json.dumps([call.operator, args, kwargs])


def from_text(line: str) -> Call:
    """The call that a line stands for."""
    operator, args, kwargs = json.loads(line)
    return Call(operator, tuple(map(_decoded, args)), {name: _decoded(each) for name, each in kwargs.items()})


def recorded() -> Iterator[str]:
    """The lines of the calls that are checked in."""
    yield from FILE.read_text().splitlines()


def name_in(line: str) -> str:
    """The operator's name in a line."""
    return line[2 : line.index('"', 2)]


def _encoded(value: Any, literal: bool) -> Any:
    if isinstance(value, pytorch.Tensor):
        return _encoded_tensor(value, literal)
    if isinstance(value, (list, tuple)):
        return [_encoded(each, literal) for each in value]
    if isinstance(value, dict):
        return {"dict": [[_encoded(each, literal) for each in pair] for pair in value.items()]}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (float, complex)):
        return {"number": repr(complex(value) if isinstance(value, complex) else value)}
    if isinstance(value, (pytorch.dtype, pytorch.layout, pytorch.memory_format)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, pytorch.device):
        return {"device": str(value)}
    raise TypeError(f"{type(value).__name__} is no argument that can be written down")


def _encoded_tensor(value: pytorch.Tensor, literal: bool) -> dict[str, Any]:
    plain = value.detach().resolve_conj().resolve_neg()
    if value.layout is pytorch.sparse_coo:
        return {"coo": [_encoded(each, literal) for each in (plain._indices(), plain._values(), list(value.shape))]}
    if value.layout is not pytorch.strided:
        rows = value.layout in (pytorch.sparse_csr, pytorch.sparse_bsr)
        places = (plain.crow_indices(), plain.col_indices()) if rows else (plain.ccol_indices(), plain.row_indices())
        parts = [*places, plain.values(), list(value.shape)]
        layout = str(value.layout).removeprefix("torch.")
        return {"compressed": [layout, *(_encoded(each, literal) for each in parts)]}
    if value.is_quantized or value.is_meta or value.is_nested:
        raise TypeError("a tensor of a kind that is not written down")
    found: dict[str, Any] = {"tensor": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if not value.is_contiguous():
        found["stride"] = list(value.stride())
    if value.is_conj():
        found["conj"] = True
    drawn = value.dtype.is_floating_point or value.dtype.is_complex
    if not drawn or literal or value.numel() <= _LITERAL:
        wide = plain.to(pytorch.complex128 if value.dtype.is_complex else pytorch.float64) if drawn else plain
        numbers = wide.flatten().tolist()
        found["values"] = [_rounded(each) for each in numbers]
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, complex):
        return [_rounded(value.real), _rounded(value.imag)]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else repr(value)
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return _decoded_tensor(value)
    if "coo" in value:
        indices, values, shape = map(_decoded, value["coo"])
        return pytorch.sparse_coo_tensor(indices, values, shape)
    if "compressed" in value:
        layout, *parts, shape = value["compressed"]
        places = [_decoded(each) for each in parts]
        return pytorch.sparse_compressed_tensor(*places, shape, layout=getattr(pytorch, layout))
    if "dict" in value:
        return {_decoded(key): _decoded(each) for key, each in value["dict"]}
    if "number" in value:
        text = value["number"]
        return complex(text) if "j" in text else float(text)
    if "torch" in value:
        return getattr(pytorch, value["torch"])
    return pytorch.device(value["device"])


def _decoded_tensor(value: dict[str, Any]) -> pytorch.Tensor:
    dtype, shape = getattr(pytorch, value["tensor"]), value["shape"]
    count = math.prod(shape)
    if "values" in value:
        numbers = [_number(each, dtype) for each in value["values"]]
        flat = pytorch.tensor(numbers, dtype=pytorch.complex128 if dtype.is_complex else None).to(dtype)
    else:
        source = numpy.random.RandomState(count)
        drawn = source.uniform(-2, 2, (2, count)).round(2)
        flat = pytorch.tensor(drawn[0] + 1j * drawn[1] if dtype.is_complex else drawn[0]).to(dtype)
    made = flat.reshape(shape)
    if "stride" in value:
        strided = pytorch.empty_strided(shape, value["stride"], dtype=dtype)
        if any(each == 0 for each in value["stride"]):  # an expanded one
            base = tuple(slice(0, 1) if step == 0 else slice(None) for step in value["stride"])
            made = made[base].expand(shape)
        else:
            made = strided.copy_(made)
    return made.conj() if value.get("conj") else made


def _number(value: Any, dtype: pytorch.dtype) -> Any:
    if isinstance(value, list):
        return complex(*(float(each) for each in value))
    return float(value) if isinstance(value, str) else value
