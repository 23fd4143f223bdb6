"""The safetensors format: what is written, what is read, and what is refused."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import pytest

import flambeau
from flambeau.safetensors import (
    SafetensorError,
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)

from .objects import DTYPES, every_dtype, picture

WITHOUT_TAG = ("complex32", "complex128")


def made(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin: int, end: int, shape: Any = None, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [(end - begin) // 4] if shape is None else shape, "data_offsets": [begin, end]}


def test_round_trip(tmp_path: Path) -> None:
    tensors = {name: each for name, each in every_dtype(flambeau).items() if name not in WITHOUT_TAG}
    assert len(tensors) == len(DTYPES) - len(WITHOUT_TAG)
    tensors |= {
        "matrix": flambeau.arange(6.0).view(2, 3),
        "scalar": flambeau.tensor(2.5),
        "empty": flambeau.empty(0, 3),
    }
    path = tmp_path / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt", "ключ": "значение"})
    for read in (load_file(path), load(path.read_bytes()), load(save(tensors))):
        assert {name: picture(each) for name, each in read.items()} == {
            name: picture(each) for name, each in tensors.items()
        }
    with safe_open(path) as file:
        assert file.metadata() == {"format": "pt", "ключ": "значение"}
        assert file.keys() == sorted(tensors)
        assert set(file.offset_keys()) == set(tensors)
        assert file.get_tensor("scalar").item() == 2.5
        part = file.get_slice("matrix")
        assert part.get_shape() == [2, 3]
        assert part[1:].tolist() == [[3.0, 4.0, 5.0]]
        assert part[:, 1].tolist() == [1.0, 4.0]
        assert part[-1].tolist() == [3.0, 4.0, 5.0]
        assert part[1:, ::2].tolist() == [[3.0, 5.0]]
        with pytest.raises(SafetensorError, match="does not contain tensor nothing"):
            file.get_tensor("nothing")


def test_layout_of_the_file() -> None:
    content = save({"b": flambeau.ones(1, dtype=flambeau.uint8), "a": flambeau.ones(2, dtype=flambeau.float64)})
    (length,) = struct.unpack("<Q", content[:8])
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    assert header == {
        "a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]},
        "b": {"dtype": "U8", "shape": [1], "data_offsets": [16, 17]},
    }
    assert len(content) == 8 + length + 17


def test_tensors_own_their_memory(tmp_path: Path) -> None:
    save_file({"a": flambeau.ones(3), "b": flambeau.ones(3)}, tmp_path / "a.safetensors")
    read = load_file(tmp_path / "a.safetensors")
    read["a"].zero_()
    assert read["b"].tolist() == [1.0, 1.0, 1.0]
    assert read["a"].untyped_storage().nbytes() == 12
    assert load_file(tmp_path / "a.safetensors", device="meta")["a"].is_meta


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "header too small"),
        (b"1234567", "header too small"),
        (made({}, length=2**63), "header too large"),
        (made({}, length=100), "invalid header length"),
        (made(b"[]"), "invalid header start"),
        (made(b" {}"), "invalid header start"),
        (made(b"{"), "invalid JSON"),
        (made(b'{"a":\xff}'), "invalid JSON"),
        (made(b'{"a":' + b"[" * 100_000), "invalid JSON"),
        (made(b'{"a":1e999999}'), "must have dtype"),
        (made(b'{"a":NaN}'), "invalid JSON"),
        (made(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{}}', bytes(4)), "duplicate key 'a'"),
        (made({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)), "invalid offset for tensor 'b'"),
        (made({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)), "invalid offset for tensor 'b'"),
        (made({"a": entry(4, 8)}, bytes(8)), "invalid offset for tensor 'a'"),
        (made({"a": entry(0, 8)}, bytes(4)), "not fully covered"),
        (made({"a": entry(0, 4)}, bytes(8)), "not fully covered"),
        (made({"a": entry(0, 4, [2])}, bytes(4)), "invalid data_offsets"),
        (made({"a": entry(8, 4, [1])}, bytes(8)), "invalid data_offsets"),
        (made({"a": entry(0, 4, [-1])}, bytes(4)), "invalid shape"),
        (made({"a": entry(0, 4, [1.0])}, bytes(4)), "invalid shape"),
        (made({"a": entry(0, 4, [2**62, 2**62, 4])}, bytes(4)), "invalid data_offsets"),
        (made({"a": entry(0, 4, [True])}, bytes(4)), "invalid shape"),
        (made({"a": entry(0, 4, dtype="F12")}, bytes(4)), "unknown dtype 'F12'"),
        (made({"a": entry(0, 4) | {"more": 1}}, bytes(4)), "must have dtype, shape and data_offsets"),
        (made({"a": [1]}), "must have dtype"),
        (made({"__metadata__": {"a": 1}}), "must map strings to strings"),
    ],
)
def test_refused(content: bytes, phrase: str, tmp_path: Path) -> None:
    with pytest.raises(SafetensorError, match=phrase):
        load(content)
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(SafetensorError, match=phrase):
        load_file(tmp_path / "bad")


def test_what_cannot_be_saved() -> None:
    base = flambeau.arange(6.0)
    with pytest.raises(RuntimeError, match=r"Some tensors share memory.*\['a', 'b'\]"):
        save({"a": base, "b": base[1:]})
    assert load(save({"a": base[:3], "b": base[3:]}))["b"].tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(ValueError, match="non contiguous tensor: `a`"):
        save({"a": base.view(2, 3).t()})
    with pytest.raises(ValueError, match=r"Key `a` is invalid, expected a torch.Tensor"):
        save({"a": 1})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="Expected a dict"):
        save([base])  # type: ignore[arg-type]
    with pytest.raises(SafetensorError, match=r"no dtype for torch.complex128"):
        save({"a": flambeau.ones(1, dtype=flambeau.complex128)})
    with pytest.raises(SafetensorError, match="strings to strings"):
        save({}, metadata={"a": 1})  # type: ignore[dict-item]
    assert load(save({})) == {}
    with pytest.raises(SafetensorError, match="framework"):
        safe_open(io.BytesIO(save({})), framework="np")


def test_models_with_tied_weights(tmp_path: Path) -> None:
    def tied() -> Any:
        model = flambeau.nn.Sequential(flambeau.nn.Linear(3, 3), flambeau.nn.Linear(3, 3))
        model[1].weight = model[0].weight
        return model

    model, other = tied(), tied()
    save_model(model, tmp_path / "model.safetensors")
    assert load_model(other, tmp_path / "model.safetensors") == ([], [])
    assert other[1].weight is other[0].weight
    assert other[0].weight.tolist() == model[0].weight.tolist()
