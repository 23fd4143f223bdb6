"""The operator database on another device: every sample runs there and on the CPU.

The device is one that stands in for a GPU, a GPU, or the CUDA backend on simulated memory. The kernels are the same
on both, so results must agree as far as the order of additions allows, and be on the device.
"""

from __future__ import annotations

import fnmatch
import json
import time
import traceback
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch as pytorch
from torch.utils._pytree import tree_map

import flambeau
from flambeau._backends.tiers import numpy_only
from flambeau._core.random.philox import cuda_generator
from tests.support.foreign import DEVICE, ForeignArray, Refused, install_foreign_device
from tests.support.simulated_cuda import install_simulated_device

from .checks import SEED, arguments, text, translated
from .compare import tensors_in
from .entries import UNINITIALISED, Entry, entries
from .translate import Missing, translate

_TOLERANCES = {"f": 1e-5, "c": 1e-5}
_OTHER_NUMBERS = "other numbers"
_NARROW = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float8_e4m3fn": 2.0**-3, "float8_e5m2": 2.0**-2}
"""The distance of neighbouring numbers, for one: where sums are added in another order, they round to either."""


class Stand(NamedTuple):
    """A device that the database runs on."""

    device: str
    array_class: type
    gaps: Path
    """The entries that do not pass, with reasons; the list only becomes shorter."""


_FOLDER = Path(__file__).parent


def foreign() -> Stand:
    """The device that stands in for a GPU."""
    install_foreign_device()
    return Stand(DEVICE, ForeignArray, _FOLDER / "foreign_gaps.json")


def cuda() -> Stand:
    """A GPU."""
    flambeau.empty(0, device="cuda")  # an error that says what is missing, where there is none
    flambeau.backends.cudnn.allow_tf32 = False  # results are compared with float32's
    from flambeau._backends.cuda.arrays.array import DeviceArray

    return Stand("cuda", DeviceArray, _FOLDER / "cuda_gaps.json")


def simulated() -> Stand:
    """The CUDA backend on simulated memory."""
    install_simulated_device()
    return cuda()._replace(gaps=_FOLDER / "foreign_gaps.json")


STANDS = {each.__name__: each for each in (foreign, cuda, simulated)}


def known_gaps(stand: Stand) -> dict[str, str]:
    return json.loads(stand.gaps.read_text())  # type: ignore[no-any-return]


def on_device(value: Any, moved: dict[int, Any], device: str) -> Any:
    """`value` with its tensors, and the devices that it names, on the device; tensors that are one stay one."""
    if isinstance(value, flambeau.Tensor):
        if id(value) not in moved:
            moved[id(value)] = value.detach().to(device).requires_grad_(value.requires_grad), value
        return moved[id(value)][0]
    if isinstance(value, flambeau.device) or value == "cpu":
        return flambeau.device(device) if str(value) == "cpu" else value
    if isinstance(value, (list, tuple)):
        items = [on_device(each, moved, device) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {name: on_device(each, moved, device) for name, each in value.items()}
    if isinstance(value, flambeau.nn.Module):
        return value.to(device)
    return value


def outcomes(entry: Entry, stand: Stand, dtype: pytorch.dtype, gradients: bool = False) -> Iterator[str | None]:
    """For each sample None where the device does as the CPU does, else what differs."""
    for sample in entry.samples(dtype, gradients):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield _outcome(entry, stand, sample, gradients)


def _outcome(entry: Entry, stand: Stand, sample: Any, gradients: bool) -> str | None:
    process = entry.process(sample)[1] if gradients else None
    args, kwargs = translated(sample)
    with numpy_only():
        expected, refusal = _run(entry, args, kwargs, process)
    args, kwargs = translated(sample)  # the first call may have changed its arguments
    memory: dict[int, Any] = {}
    try:
        args, kwargs = on_device(args, memory, stand.device), on_device(kwargs, memory, stand.device)
    except Exception as wrong:
        return _place(wrong)
    actual, error = _run(entry, args, kwargs, process)
    only_shapes = cuda_generator.get_offset() > 0 or entry.info.name in UNINITIALISED  # a GPU's numbers are others
    if refusal is not None:
        return None if isinstance(error, type(refusal)) else f"{error!r} in place of {refusal!r}"
    if error is not None:
        return _place(error)
    try:
        found = _difference(expected, actual, only_shapes, stand)
        if found == _OTHER_NUMBERS and process is None and pytorch.cuda.is_available():
            found = _difference(_by_pytorch_there(entry, sample), actual, only_shapes, stand)
    except (Refused, TypeError) as wrong:
        return _place(wrong)
    return found


def _by_pytorch_there(entry: Entry, sample: Any) -> Any:
    """What PyTorch gives on the GPU, whose libraries choose signs of eigenvectors, orders and widths of sums."""
    there = sample.transform(lambda each: each.cuda() if isinstance(each, pytorch.Tensor) else each)
    args, kwargs = arguments(there)
    pytorch.manual_seed(SEED)
    with pytorch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        result = entry.info.op(*args, **kwargs)
    return translate(tree_map(lambda each: each.cpu() if isinstance(each, pytorch.Tensor) else each, result))


def _run(entry: Entry, args: Any, kwargs: Any, process: Any) -> tuple[Any, Exception | None]:
    """What an entry gives, or with `process` the gradients of its inputs."""
    flambeau.manual_seed(SEED)  # which also puts the offset of a GPU's numbers back to 0
    try:
        result = entry.op(*args, **kwargs)
        return result if process is None else gradients_of(process(result), (args, kwargs)), None
    except Missing:
        raise
    except Exception as error:
        return None, error


def gradients_of(result: Any, given: Any) -> Any:
    """The gradients of all results, weighted one by one."""
    results = [each for each in tensors_in(result) if each.requires_grad]
    inputs = [each for each in tensors_in(given) if each.requires_grad]
    weights = []
    for each in results:
        steps = np.arange(each.numel()).reshape(each.shape) % 7 / 7.0 + 0.5
        weights.append(flambeau.from_numpy(np.asarray(steps)).to(each))
    return flambeau.autograd.grad(results, inputs, weights, allow_unused=True) if results and inputs else ()


def _place(error: Exception) -> str:
    """An error and the line of the package where it came from."""
    steps = [step for step in traceback.extract_tb(error.__traceback__) if "/flambeau/" in step.filename]
    where = f"{steps[-1].filename.rpartition('/flambeau/')[2]}:{steps[-1].lineno}" if steps else "outside"
    return f"{text(error)} at {where}"


def _difference(expected: Any, actual: Any, only_shapes: bool, stand: Stand) -> str | None:
    if isinstance(expected, flambeau.Tensor):
        if not isinstance(actual, flambeau.Tensor):
            return f"a {type(actual).__name__} in place of a tensor"
        return _tensors_differ(expected, actual, only_shapes, stand)
    if isinstance(expected, (list, tuple)):
        if len(expected) != len(actual):
            return f"{len(actual)} results in place of {len(expected)}"
        pairs = zip(expected, actual, strict=True)
        return next((found for a, b in pairs if (found := _difference(a, b, only_shapes, stand)) is not None), None)
    if isinstance(expected, (flambeau.device, str)) or type(expected).__module__ != "builtins":
        return None
    return None if expected == actual or expected != expected else f"{actual!r} in place of {expected!r}"


def _tensors_differ(expected: Any, actual: Any, only_shapes: bool, stand: Stand) -> str | None:
    if actual.layout is not flambeau.strided:
        expected, actual = expected.to_dense(), actual.to_dense()
    if (actual.device.type == stand.device.partition(":")[0]) != (type(actual._array) is stand.array_class):
        return f"a {type(actual._array).__name__} in a tensor on {actual.device}"
    if (expected.shape, expected.dtype) != (actual.shape, actual.dtype):
        return f"{actual.shape}, {actual.dtype} in place of {expected.shape}, {expected.dtype}"
    if expected.device.type == "meta" or only_shapes:
        return None
    ours, theirs = (each.detach().cpu().resolve_conj().resolve_neg()._array for each in (actual, expected))
    tolerance = _TOLERANCES.get(ours.dtype.kind)
    if ours.dtype.name in _NARROW:
        tolerance = _NARROW[ours.dtype.name]
        ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    if tolerance is None:
        same = np.array_equal(ours, theirs)
    else:
        same = np.allclose(ours, theirs, tolerance, tolerance, equal_nan=True)
    return None if same else _OTHER_NUMBERS


def examine(entry: Entry, stand: Stand, limit: int | None = None, gradients: bool = False) -> list[str]:
    """What differs, in the first `limit` samples of an entry."""
    dtypes = entry.gradient_dtypes if gradients else entry.dtypes and [entry.main_dtype]
    if not dtypes:
        return []
    try:
        found = islice(outcomes(entry, stand, dtypes[0], gradients), limit)
        return [each for each in found if each is not None]
    except Missing as missing:
        return [f"missing: {missing}"]


def main(device: str, patterns: list[str] | None, limit: int | None, every: int = 1, gradients: bool = False) -> int:
    """The command: all entries, or those whose names match; 0 where exactly the listed ones fail."""
    began = time.monotonic()
    stand = STANDS[device]()
    chosen = [
        entry for entry in entries() if not patterns or any(fnmatch.fnmatch(entry.name, each) for each in patterns)
    ][::every]
    known = known_gaps(stand)
    passed = surprises = 0
    for entry in chosen:
        found = examine(entry, stand, limit, gradients)
        passed += not found
        if bool(found) is not (entry.name in known) and (found or (limit is None and not gradients)):
            surprises += 1
            print(f"{entry.name}: {found[0] if found else 'passes now: take it off the list'}", flush=True)
    what = "gradients of entries" if gradients else "entries"
    print(f"{passed} of {len(chosen)} {what} pass on {device}, {time.monotonic() - began:.0f} s")
    return int(surprises > 0)
