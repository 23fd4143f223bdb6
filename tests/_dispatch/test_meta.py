"""The meta device: shapes, strides and dtypes of a program's tensors, and no data."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau import nn
from flambeau.nn import functional as F

from ..conformance.checks import arguments
from ..conformance.entries import Entry, entries
from ..conformance.translate import translate
from ..support.allocations import counted_allocations

_LITTLE = 4 << 20


def _shapes_of_data() -> dict[str, Callable[[Any], Any]]:
    """Calls whose results depend on elements, as functions of the library."""

    def x(library: Any, dtype: str = "float32") -> Any:
        return library.empty(3, 4, dtype=getattr(library, dtype), device="meta")

    return {
        "masked_select": lambda library: library.masked_select(x(library), x(library, "bool")),
        "mask": lambda library: x(library)[x(library, "bool")],
        "nonzero": lambda library: x(library).nonzero(),
        "where": lambda library: library.where(x(library, "bool")),
        "bincount": lambda library: library.bincount(x(library, "int64")[0]),
        "unique": lambda library: library.unique(x(library)),
        "unique_consecutive": lambda library: library.unique_consecutive(x(library)),
        "equal": lambda library: library.equal(x(library), x(library)),
        "allclose": lambda library: library.allclose(x(library), x(library)),
        "item": lambda library: x(library)[0, 0].item(),
        "bool": lambda library: bool(x(library)[0, 0]),
        "tolist": lambda library: x(library).tolist(),
        "repeat_interleave": lambda library: library.repeat_interleave(x(library, "int64")[0]),
        "cpu": lambda library: x(library).cpu(),
    }


@pytest.mark.parametrize("name", _shapes_of_data())
def test_what_depends_on_elements_is_refused(name: str) -> None:
    call = _shapes_of_data()[name]
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        call(pytorch)
    with pytest.raises(expected.type) as actual:
        call(flambeau)
    assert actual.type is expected.type
    assert str(actual.value)[:25] == str(expected.value)[:25]


_UNKNOWN = {
    "item", "masked_select", "to", "narrow", "tensor_split", "bincount", "to_sparse",
    "nn.functional.one_hot", "argwhere", "nn.functional.ctc_loss", "repeat_interleave", "combinations", "unique",
    "unique_consecutive", "nonzero", "allclose", "equal",
}  # fmt: skip
"""The entries of which some samples are refused: their results, or arguments, are in elements. An entry that is not
refused any more must leave the list."""


_OTHER_SHAPES = {"native_batch_norm", "_native_batch_norm_legit"}
"""Outside of training they return empty statistics, but not on meta: so does PyTorch."""


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, flambeau.Tensor):
        return [value]
    return [each for item in value for each in _tensors(item)] if isinstance(value, (list, tuple)) else []


@pytest.mark.parametrize(
    "entry", [each for each in entries() if each.dtypes and each.name not in _OTHER_SHAPES], ids=repr
)
def test_results_lie_as_on_the_cpu(entry: Entry) -> None:
    refused = False
    for sample in islice(entry.samples(entry.main_dtype), 40 if entry.name in _UNKNOWN else 2):
        if (calls := _on_both(sample)) is None:
            continue
        (args, kwargs), (meta_args, meta_kwargs) = calls
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = _tensors(entry.op(*args, **kwargs))
            try:
                actual = _tensors(entry.op(*meta_args, **meta_kwargs))
            except (RuntimeError, NotImplementedError):
                assert entry.name in _UNKNOWN
                refused = True
                continue
        for real, shape in zip(expected, actual, strict=True):
            if real.layout is flambeau.strided:
                assert (shape.shape, shape.dtype) == (real.shape, real.dtype)
                steps = zip(real.shape, real.stride(), shape.stride(), strict=True)
                assert not real.numel() or all(size == 1 or one == other for size, one, other in steps)
    assert refused == (entry.name in _UNKNOWN), f"{entry.name} is not refused any more: take it off the list"


def _on_both(sample: Any) -> Any:
    """The arguments of a sample as they are, and on the meta device; None if there is no such thing."""
    shadow = sample.transform(lambda each: each.to("meta") if isinstance(each, pytorch.Tensor) else each)
    try:
        (args, kwargs), (meta_args, meta_kwargs) = translate(arguments(sample)), translate(arguments(shadow))
    except NotImplementedError:  # sparse tensors are not on meta
        return None
    if "device" in kwargs:
        meta_kwargs = {**meta_kwargs, "device": "meta"}
    return (args, kwargs), (meta_args, meta_kwargs)


def _largest(value: Any) -> int:
    return max([each.nbytes for each in _tensors(value)], default=0)


_TABLES = 128
"""Bytes that numbers take, and tables of a few positions."""


@pytest.mark.parametrize("entry", [each for each in entries() if each.dtypes], ids=repr)
def test_no_entry_allocates_data(entry: Entry) -> None:
    """While an op runs on meta NumPy is not asked for an array that could hold the elements of its tensors."""
    for sample in islice(entry.samples(entry.main_dtype), 12):
        if (calls := _on_both(sample)) is None:
            continue
        args, kwargs = calls[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = entry.op(*args, **kwargs)  # what is made once, at a first call, is not meant
                with counted_allocations() as sizes:
                    entry.op(*args, **kwargs)
            except (RuntimeError, NotImplementedError):
                continue
        assert max(sizes, default=0) < max(_TABLES + 1, _largest([result, list(args), list(kwargs.values())])), sizes


def test_allocations_are_counted() -> None:
    """What the test above relies on."""
    x = flambeau.ones(100, 100)
    with counted_allocations() as sizes:
        (x + x).sum()
    assert max(sizes) == x.nbytes


def _far(*shape: int, dtype: Any = None) -> Any:
    return flambeau.empty(shape, dtype=dtype, device="meta")


_LARGE: dict[str, Callable[[], Any]] = {
    "matmul": lambda: _far(200_000, 8) @ _far(8, 200_000),
    "add": lambda: _far(100_000, 1) + _far(1, 100_000),
    "exp": lambda: _far(1 << 34).exp(),
    "sum": lambda: _far(1 << 20, 1 << 12).sum(0),
    "gelu": lambda: F.gelu(_far(1 << 20, 1 << 12)),
    "layer_norm": lambda: F.layer_norm(_far(1 << 20, 1 << 12), (1 << 12,)),
    "softmax": lambda: _far(1 << 20, 1 << 12).softmax(-1),
    "cat": lambda: flambeau.cat([_far(1 << 30), _far(1 << 30)]),
    "index": lambda: _far(1 << 20, 1 << 12)[_far(1 << 20, dtype=flambeau.int64)],
    "embedding": lambda: F.embedding(_far(1 << 20, dtype=flambeau.int64), _far(50_000, 4096)),
    "conv2d": lambda: F.conv2d(_far(4096, 64, 224, 224), _far(128, 64, 3, 3)),
    "copy": lambda: _far(1 << 20, 1 << 12).t().contiguous(),
    "full": lambda: flambeau.full((1 << 34,), 3.0, device="meta"),
    "uniform_": lambda: _far(1 << 34).uniform_(),
    "zeros_like": lambda: flambeau.zeros_like(_far(1 << 34)),
    "cumsum": lambda: _far(1 << 20, 1 << 12).cumsum(0),
}


@pytest.mark.parametrize("name", _LARGE)
def test_nothing_is_allocated(name: str) -> None:
    _LARGE[name]()  # what a first call imports is not meant
    gc.collect()
    gc.disable()  # nor is what finalizers of earlier tests' objects allocate, when a collection happens to fall in here
    tracemalloc.start()
    try:
        result = _LARGE[name]()
        assert tracemalloc.get_traced_memory()[1] < _LITTLE
    finally:
        tracemalloc.stop()
        gc.enable()
    assert result.is_meta


def test_initialisation_and_to_empty_cost_nothing() -> None:
    with flambeau.device("meta"):
        layer = nn.Linear(1 << 18, 1 << 18)
    nn.init.xavier_uniform_(layer.weight)
    assert layer.to_empty(device="meta").weight.shape == (1 << 18, 1 << 18)
    assert layer.weight.untyped_storage().nbytes() == 4 << 36


def test_views_share_a_storage() -> None:
    one, other = _far(3, 4), _far(3, 4)
    assert one.untyped_storage() is not other.untyped_storage()
    assert one[1:].untyped_storage() is one.untyped_storage()
    assert one[1:].storage_offset() == 4


def test_what_has_no_data_is_not_read_beside_what_has() -> None:
    """PyTorch returns uninitialised memory for most of these."""
    real, positions = flambeau.ones(5), _far(3, dtype=flambeau.int64)
    calls: list[Callable[[], Any]] = [
        lambda: real[positions],
        lambda: real[positions, None],
        lambda: real.__setitem__(positions, 1.0),
        lambda: real.index_put((positions,), flambeau.tensor(1.0)),
        lambda: real.take(positions),
        lambda: real.gather(0, positions),
        lambda: F.embedding(positions, flambeau.ones(5, 2)),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()
    with pytest.raises(NotImplementedError, match="register_meta function for"):
        real[_far(5, dtype=flambeau.bool)]


def test_masks_without_data_may_be_written_through() -> None:
    x, mask = _far(5, 4), _far(5, dtype=flambeau.bool)
    for values in (_far(3, 4), _far(4), _far()):
        assert x.index_put((mask,), values).shape == (5, 4)
        x[mask] = values
    x[mask] = 1.0
    assert _far(5)[flambeau.tensor([True, False, True, True, False])].shape == (3,)


def test_results_that_no_storage_holds_are_refused() -> None:
    line = _far(1 << 40)
    for call in (lambda: line[:, None] * line, lambda: flambeau.outer(line, line)):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            call()
    assert flambeau.cdist(_far(1 << 20, 1 << 30), _far(1 << 20, 1 << 30)).shape == (1 << 20, 1 << 20)


def test_places_in_rows_are_not_written_out() -> None:
    """What takes elements at positions along a dimension costs nothing, however many rows there are."""
    large = flambeau.empty(10**9, 10**9, device="meta")
    assert large.topk(3)[0].shape == (10**9, 3)
    assert large.topk(3, 0)[1].shape == (3, 10**9)
    deep = flambeau.empty(10**7, 100, 10**8, device="meta")
    assert deep.topk(2, 1)[0].shape == (10**7, 2, 10**8)
    assert deep.kthvalue(3, 1)[0].shape == deep.median(1)[1].shape == (10**7, 10**8)
    labels = flambeau.empty(10**9, dtype=flambeau.int64, device="meta")
    assert F.multi_margin_loss(large, labels, reduction="none").shape == (10**9,)
