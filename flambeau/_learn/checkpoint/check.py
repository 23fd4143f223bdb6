"""Checks an answer to the lesson about checkpoints, with files that the engine writes and with damaged ones."""

from __future__ import annotations

import json
import struct
from typing import Any

import flambeau

from ... import safetensors
from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau


def _compare(answer: Any, tensors: dict[str, Any], advice: str, metadata: dict[str, str] | None = None) -> None:
    got = asked_for(answer, "read")(safetensors.save(tensors, metadata))
    if not isinstance(got, dict):
        raise Wrong(f"read returns a dict of tensors; yours returns {type(got).__name__}.")
    if set(got) != set(tensors):
        raise Wrong(f"The file holds {sorted(tensors)}, your reader finds {sorted(got)}. {advice}")
    for name, right in tensors.items():
        found = got[name]
        if found.dtype is not right.dtype:
            raise Wrong(
                f"{name} has dtype {right.dtype}, your reader gives {found.dtype}: the header says which it is."
            )
        if found.shape != right.shape:
            raise Wrong(
                f"{name} has shape {tuple(right.shape)}, your reader gives {tuple(found.shape)}: the header has it."
            )
        if not torch.equal(found, right):
            raise Wrong(f"{name} is {right.tolist()}, your reader gives {found.tolist()}. {advice}")


@STEPS.step(
    "a file with one tensor",
    'The first eight bytes are struct.unpack("<Q", data[:8]): "<" is little-endian, "Q" unsigned.',
)
def one(answer: Any) -> None:
    """One float32 vector."""
    _compare(
        answer,
        {"weight": torch.tensor([1.0, 2.0, 3.0])},
        "Offsets count from the end of the header, byte 8 + its length.",
    )


@STEPS.step("several tensors, of several shapes", "An entry's offsets count from the end of the header.")
def several(answer: Any) -> None:
    """Offsets and shapes, also none and empty ones."""
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7.0), "c": torch.tensor([8.0, 9.0])}
    _compare(answer, tensors, "data_offsets count from the end of the header, and end is exclusive.")


@STEPS.step("an empty tensor", "A shape such as (0, 4) has no bytes: torch.frombuffer refuses to read none.")
def empty(answer: Any) -> None:
    """No bytes at all."""
    _compare(answer, {"none": torch.empty(0, 4), "a": torch.ones(1)}, "A tensor may be empty.")


@STEPS.step("other dtypes", "The dtype of each tensor is in the header; DTYPES has its names.")
def dtypes(answer: Any) -> None:
    """Dtypes."""
    tensors = {
        "double": torch.tensor([0.1, 0.2], dtype=torch.float64),
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "ids": torch.tensor([2**40, -1]),
        "mask": torch.tensor([True, False, True]),
    }
    _compare(answer, tensors, "The header says which dtype each has.")


@STEPS.step("metadata is no tensor", '"__metadata__" in the header holds strings: skip it.')
def metadata(answer: Any) -> None:
    """The one name that is none of a tensor."""
    _compare(answer, {"weight": torch.ones(2)}, "", {"format": "pt"})


@STEPS.step("the tensors can be trained: their memory is their own")
def own_memory(answer: Any) -> None:
    """Writable, independent tensors."""
    got = asked_for(answer, "read")(safetensors.save({"a": torch.zeros(2), "b": torch.zeros(2)}))
    try:
        got["a"] += 1
    except Exception as error:
        raise Wrong(
            "The tensors cannot be changed: they read the bytes object itself. Copy the data: bytearray(...), or "
            "clone()."
        ) from error
    again = asked_for(answer, "read")(safetensors.save({"a": torch.zeros(2), "b": torch.zeros(2)}))
    if got["b"].sum().item() or again["a"].sum().item():
        raise Wrong("Changing one tensor changes another one: they share memory.")


def _file(header: object, content: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


@STEPS.step("damaged files are refused")
def damaged(answer: Any) -> None:
    """No file is trusted."""
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    cases = {
        "an empty file": b"",
        "a header that is longer than the file": struct.pack("<Q", 10**12) + b"{}",
        "a tensor beyond the end of the file": _file({"a": {**entry, "data_offsets": [8, 16]}}, bytes(8)),
        "offsets that do not fit the shape": _file({"a": {**entry, "shape": [3]}}, bytes(8)),
        "negative offsets": _file({"a": {**entry, "data_offsets": [-8, 0]}}, bytes(16)),
    }
    for what, data in cases.items():
        try:
            got = asked_for(answer, "read")(data)
        except ValueError:
            continue
        except Exception as error:
            raise Wrong(
                f"For {what} your reader raises {type(error).__name__}: a ValueError with a reason helps its user."
            ) from error
        raise Wrong(
            f"Your reader takes {what} and returns {got!r}: compare lengths and offsets, and raise a ValueError."
        )


@STEPS.step("a network takes its weights from your reader")
def network(answer: Any) -> None:
    """A real state dict."""
    source, target = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    target.load_state_dict(asked_for(answer, "read")(safetensors.save(source.state_dict())))
    x = torch.ones(1, 3)
    if not torch.equal(source(x), target(x)):
        raise Wrong("A Linear with the weights that your reader gives computes something else.")
