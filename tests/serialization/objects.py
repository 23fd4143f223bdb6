"""What people save, as functions of the module that plays `torch`, and a picture of an object to compare by."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch as pytorch

import flambeau

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
    "float8_e5m2fnuz",
)  # fmt: skip
TENSORS = (pytorch.Tensor, flambeau.Tensor)
TYPED_STORAGES = (pytorch.TypedStorage, flambeau.TypedStorage)
STORAGES = (pytorch.UntypedStorage, flambeau.UntypedStorage, *TYPED_STORAGES)
Build = Callable[[Any], Any]


def every_dtype(torch: Any) -> Any:
    raw = torch.arange(16, dtype=torch.uint8)
    return {name: raw.clone().view(getattr(torch, name)) if name != "bool" else raw > 7 for name in DTYPES}


def views(torch: Any) -> Any:
    base = torch.arange(24.0).view(2, 3, 4)
    return {
        "transposed": base.transpose(0, 2),
        "rows": base[1, 1:],
        "column": base[:, :, 1],
        "expanded": torch.ones(3, 1).expand(3, 5),
        "strided": torch.as_strided(torch.arange(10), (3, 2), (2, 3), 1),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "channels_last": torch.ones(1, 2, 3, 3).contiguous(memory_format=torch.channels_last),
    }


def shared(torch: Any) -> Any:
    base = torch.arange(10.0)
    twice = torch.ones(2)
    number = torch.ones(3, dtype=torch.complex64)
    return [base[:4], base[4:], base, twice, twice, torch.nn.Parameter(base), number]


def containers(torch: Any) -> Any:
    ordered = OrderedDict(b=torch.ones(1), a=[1, (2.5, "drei"), {"x": None}])
    ordered._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
    cyclic: list[Any] = [1]
    cyclic.append(cyclic[0])
    return {
        "ordered": ordered,
        "set": {1, 2},
        "frozen": frozenset({"a"}),
        "counts": Counter("abca"),
        "default": defaultdict(dict, {0: {"step": torch.tensor(3.0)}}),
        "list": cyclic,
        "tuple": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "numbers": [0, -1, 255, 65536, -(2**31), 2**40, -(2**100), 1.5, math.inf, 2 + 3j, True, False],
        "text": ["", "ünïcødé \u2603", "x" * 300, b"", b"\x00\xff", bytearray(b"ab")],
        (1, "key"): range(3),
    }


def torch_values(torch: Any) -> Any:
    return {
        "size": torch.Size([2, 3]),
        "dtypes": [torch.float32, torch.bfloat16, torch.bool],
        "devices": [torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")],
        "layout": torch.strided,
    }


def parameters(torch: Any) -> Any:
    marked = torch.nn.Parameter(torch.ones(2))
    marked.tag = "mine"
    noted = torch.ones(3)
    noted.note = {"a": 1}
    return [
        torch.nn.Parameter(torch.arange(3.0)),
        torch.nn.Parameter(torch.arange(3), requires_grad=False),
        marked,
        noted,
        torch.ones(2, requires_grad=True),
        torch.nn.Buffer(torch.zeros(1)),
    ]


def storages(torch: Any) -> Any:
    tensor = torch.arange(4.0).untyped_storage()
    return [tensor, tensor, torch.ones(3, dtype=torch.int16).untyped_storage()]


def arrays(torch: Any) -> Any:
    return {
        "array": np.arange(6, dtype=np.float32).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "text": np.array(["a", "bcd"]),
        "bytes": np.array([b"a", b"bcd"]),
        "scalar": np.float64(2.5),
        "flag": np.bool_(True),
        "dtype": np.dtype("int16"),
        "empty": np.empty((0, 2)),
    }


def without_data(torch: Any) -> Any:
    return [torch.empty(2, 3, device="meta"), torch.empty(4, device="meta", dtype=torch.int64, requires_grad=False)]


def optimizer_state(torch: Any) -> Any:
    moments = {index: {"step": torch.tensor(3.0), "exp_avg": torch.ones(2) * index} for index in range(3)}
    group = {"lr": 1e-3, "betas": (0.9, 0.999), "amsgrad": False, "foreach": None, "params": [0, 1, 2]}
    return {"state": moments, "param_groups": [group], "rng": torch.arange(10, dtype=torch.uint8)}


BUILDS: dict[str, Build] = {
    build.__name__: build
    for build in (
        every_dtype, views, shared, containers, torch_values, parameters, storages, arrays, without_data,
        optimizer_state,
    )
}  # fmt: skip


def picture(value: Any, seen: list[Any] | None = None, depth: int = 0) -> Any:
    """A description, equal for equal objects of both libraries: values, types, strides, and what shares memory."""
    seen = [] if seen is None else seen
    assert depth < 50
    if isinstance(value, TENSORS):
        return _tensor_picture(value, seen)
    if isinstance(value, STORAGES):
        untyped = value._untyped_storage if isinstance(value, TYPED_STORAGES) else value
        return "storage", untyped.tolist(), _number(untyped, seen)  # PyTorch reads all storages as typed ones
    if isinstance(value, np.ndarray):
        return "array", value.tolist(), value.dtype.str, value.shape, value.flags.f_contiguous
    if isinstance(value, np.generic):
        return type(value).__name__, value.item()
    if isinstance(value, np.dtype):
        return "dtype", value.str
    if isinstance(value, dict):
        items = [(picture(key, seen, depth + 1), picture(item, seen, depth + 1)) for key, item in value.items()]
        attributes = picture(dict(vars(value)), seen, depth + 1) if hasattr(value, "__dict__") else None
        return type(value).__name__, items, attributes, getattr(value, "default_factory", None)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [picture(item, seen, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(value, key=repr)
    if isinstance(value, (bool, int, float, complex, str, bytes, bytearray, range, type(None))):
        return type(value).__name__, value
    if type(value).__name__ in ("dtype", "device", "layout", "memory_format"):
        return type(value).__name__, str(value)
    return type(value).__name__, picture(vars(value), seen, depth + 1)


def _number(storage: Any, seen: list[Any]) -> int:
    """Which of the storages seen so far this is: the same numbers mean the same sharing."""
    for number, (place, _) in enumerate(seen):
        if storage.data_ptr() == place and storage.nbytes():
            return number
    seen.append((storage.data_ptr(), storage))
    return len(seen) - 1


def _tensor_picture(value: Any, seen: list[Any]) -> Any:
    plain = value.detach()
    attributes = {key: item for key, item in vars(value).items() if not key.startswith("__")}
    about = {
        "class": type(value).__name__,
        "dtype": str(value.dtype),
        "shape": tuple(value.shape),
        "stride": tuple(value.stride()) if value.numel() else None,
        "device": str(value.device),
        "requires_grad": value.requires_grad,
        "attributes": picture(attributes, seen, 1),
    }
    if value.device.type != "meta":
        about["storage"] = _number(value.untyped_storage(), seen)
        about["offset"] = value.storage_offset() if value.numel() else 0
        about["bytes"] = plain.contiguous().reshape(-1).view(_byte(value)).tolist() if value.numel() else []
    return about


def _byte(value: Any) -> Any:
    return (pytorch if isinstance(value, pytorch.Tensor) else flambeau).uint8
