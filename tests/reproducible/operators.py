"""PyTorch's operator database at the levels of `flambeau.reproducible`: which entries give the same bits?

Each entry runs with its first samples, and the first of them again, repeated to tens of thousands of elements, so that
threads share the work; results and gradients are compared bit by bit.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import flambeau
from tests.conformance.checks import SEED, translated
from tests.conformance.compare import tensors_in
from tests.conformance.entries import UNINITIALISED, Entry, entries
from tests.conformance.foreign import on_device

THREADS = (1, 3, 7)
SAMPLES = 2
LARGE = 60_000
SMALLER = 4_000
"""For ops whose running times, or results, grow with the square of their inputs."""
_OF_MEMORY = ("as_strided.partial_views",)
"""Entries that read memory beside their tensors: copies at other addresses have other neighbours."""
_SLOW = (
    "unbind",
    "split",
    "chunk",
    "unsafe_",
    "pca",
    "tensor_split",
    "linalg.",
    "lu",
    "ldl",
    "cholesky",
    "svd",
    "geqrf",
    "qr",
    "pinverse",
    "symeig",
    "matrix_exp",
    "ormqr",
)


class Place:
    """Where entries run, and what the last call that was refused there says."""

    device = "cpu"
    refused: str | None = None


def chosen() -> list[Entry]:
    """The entries that have samples and a defined result."""
    return [each for each in entries() if each.dtypes and each.name not in UNINITIALISED]


def same_again(entry: Entry) -> str | None:
    """At "run": the same bits in a second run, whose inputs stand at other addresses."""
    elsewhere = Place.device == "cpu" and entry.name not in _OF_MEMORY
    return _compared(entry, "run", [("again", 2, False), ("at another address", 2, elsewhere)])


def same_for_threads(entry: Entry) -> str | None:
    """At "threads": the same bits for each number of threads."""
    return _compared(entry, "threads", [(f"{threads} threads", threads, False) for threads in THREADS])


def same_in_batches(entry: Entry) -> str | None:
    """At "batch": the same bits for samples alone and among others, in the first tensor alone and in all of them.

    An op treats the first dimension as a batch if repeated samples give repeated results but for rounding.
    """
    ran = False
    for sample in _samples(entry):
        alone = _results(entry, sample, "batch")
        if alone is None:
            continue
        for times in (3, 20 if entry.name.startswith(_SLOW) else 400):
            for only_first in (True, False):
                changed = _in_turn(functools.partial(_times, times), only_first)
                among = _results(entry, sample, "batch", changed)
                for one, many in zip(alone, among or (), strict=False):
                    if one is None or many is None or one.ndim == 0 or not one.size or one.dtype.kind not in "fc":
                        continue
                    wanted = np.concatenate([one] * times)
                    # Nothing but zeros, as in gradients of a product of all elements, does not tell what a sample is.
                    if many.shape != wanted.shape or not wanted.any() or not _are_close(many, wanted):
                        continue
                    ran = True
                    if np.ascontiguousarray(many).tobytes() != np.ascontiguousarray(wanted).tobytes():
                        return f"{times} samples, {'the first tensor' if only_first else 'all tensors'} repeated"
    return "" if ran else None


def _are_close(many: Any, wanted: Any) -> bool:
    largest = np.max(np.abs(wanted), where=np.isfinite(wanted), initial=0)
    return bool(np.allclose(many, wanted, 1e-4, 1e-6 * float(largest), equal_nan=True))


CHECKS: dict[str, Callable[[Entry], str | None]] = {
    "run": same_again,
    "threads": same_for_threads,
    "batch": same_in_batches,
}
"""For each level what says how an entry misses it: "" if it holds, None if nothing ran."""


def _compared(entry: Entry, level: str, ways: list[tuple[str, int, bool]]) -> str | None:
    ran = False
    before = flambeau.get_num_threads()
    try:
        for number, sample in enumerate(_samples(entry)):
            for grown in (0, _growth(entry, sample)) if number == 0 else (0,):
                found = [_bits(entry, sample, grown, level, threads, shifted) for _, threads, shifted in ways]
                if None in found:
                    continue
                ran = True
                for (way, _, _), bits in zip(ways, found, strict=True):
                    if bits != found[0]:
                        return f"{way}, {'large' if grown else 'small'}"
    finally:
        flambeau.set_num_threads(before)
    return "" if ran else None


def _samples(entry: Entry) -> Iterator[Any]:
    dtype = entry.main_dtype
    needs_grad = bool(entry.info.supports_autograd) and (dtype.is_floating_point or dtype.is_complex)
    with contextlib.suppress(Exception):  # an entry that cannot make its samples has none
        for number, sample in enumerate(entry.samples(dtype, requires_grad=needs_grad)):
            if number == SAMPLES:
                return
            yield sample


def _growth(entry: Entry, sample: Any) -> int:
    """How many elements the tensors of a sample are to have."""
    if entry.name.startswith(_SLOW):
        return SMALLER
    found = _bits(entry, sample, SMALLER, "run", 1, False) or []
    return SMALLER if sum(map(len, found)) > 200 * SMALLER else LARGE


def _bits(entry: Entry, sample: Any, grown: int, level: str, threads: int, shifted: bool) -> list[bytes] | None:
    """The bits of results and gradients; None: the call is refused, or does not take larger tensors."""
    flambeau.set_num_threads(threads)

    def changed(value: Any) -> Any:
        if grown:
            value = _changed(value, lambda each: _repeated(each, grown))
        return _changed(value, _shifted) if shifted else value

    found = _results(entry, sample, level, changed)
    return None if found is None else [np.ascontiguousarray(each).tobytes() for each in found if each is not None]


def _results(
    entry: Entry, sample: Any, level: str, changed: Callable[[Any], Any] = lambda value: value
) -> list[Any] | None:
    """The arrays of results and gradients, None for gradients that there are not; or None: the call is refused."""
    flambeau.manual_seed(SEED)
    with warnings.catch_warnings(), flambeau.reproducible(level):
        warnings.simplefilter("ignore")
        try:
            args, kwargs = changed(_there(translated(sample)))
            given = [each for each in tensors_in((args, kwargs)) if each.requires_grad]
            results = tensors_in(entry.op(*args, **kwargs))
            recorded = [each for each in results if each.requires_grad]
            gradients: Any = ()
            if recorded and given:
                weights = [(each.detach() * 0.37).cos() for each in recorded]
                gradients = flambeau.autograd.grad(recorded, given, weights, allow_unused=True)
            return [
                None if each is None else each.detach().resolve_conj().resolve_neg().cpu()._array
                for each in (*results, *gradients)
            ]
        except Exception as error:  # larger tensors do not fit every op
            if "reproducible(" in str(error) or "deterministic" in str(error):
                Place.refused = str(error)
            return None


def _there(value: Any) -> Any:
    """Arguments on the device."""
    return value if Place.device == "cpu" else on_device(value, {}, Place.device)


def _in_turn(change: Callable[[flambeau.Tensor], flambeau.Tensor], only_first: bool) -> Callable[[Any], Any]:
    """Changes all tensors of a value, or the first of them."""

    def changed(value: Any) -> Any:
        seen: list[flambeau.Tensor] = []

        def change_one(tensor: flambeau.Tensor) -> flambeau.Tensor:
            seen.append(tensor)
            return tensor.detach() if only_first and len(seen) > 1 else change(tensor)

        return _changed(value, change_one)

    return changed


def _times(times: int, tensor: flambeau.Tensor) -> flambeau.Tensor:
    """A tensor repeated along its first dimension."""
    return tensor.detach().repeat(times, *[1] * (tensor.dim() - 1))


def _repeated(tensor: flambeau.Tensor, wanted: int) -> flambeau.Tensor:
    """A tensor repeated along its first dimension until it has about `wanted` elements."""
    return _times(max(1, wanted // tensor.numel()), tensor)


def _shifted(tensor: flambeau.Tensor) -> flambeau.Tensor:
    """The same elements one element further than an allocation begins."""
    array = tensor.detach().resolve_conj().resolve_neg()._array
    memory = np.empty(array.size + 1, array.dtype)[1:].reshape(array.shape)
    memory[...] = array
    return flambeau.from_numpy(memory)


def _changed(value: Any, change: Callable[[flambeau.Tensor], flambeau.Tensor]) -> Any:
    """A value with its contiguous tensors, which have dimensions and elements, changed."""
    if isinstance(value, flambeau.Tensor):
        if value.dim() == 0 or not value.numel() or not value.is_contiguous() or value.layout != flambeau.strided:
            return value
        return change(value).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_changed(each, change) for each in value)
    if type(value) is dict:
        return {key: _changed(each, change) for key, each in value.items()}
    return value
