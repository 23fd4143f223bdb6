"""Random numbers on the device: the numbers of PyTorch's CUDA kernels, for the same seed, shape and dtype."""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from ...._codegen.cuda.random import INTEGERS, THREADS, bernoulli_source, draw_source, mask_source
from ...._core.arrays.quick import name_of
from ...._core.generator import default_generator
from ...._core.random.philox import PhiloxGenerator, cuda_generator, generator_of
from ..arrays.array import DeviceArray, empty, form_of, of_form
from ..runtime.any_gpu import resident_threads
from ..runtime.driver import driver
from ..runtime.plans import of_level
from ..runtime.recording import position
from ..runtime.synchronization import HERE

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_EPSILON = {"float64": 2.0**-52}
_LARGEST_INTEGER = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_BOOL = np.dtype(bool)
_FEW = 1 << 28
"""Below so many values, 32 bits are enough for a remainder."""


def source_of(generator: Any) -> PhiloxGenerator:
    """The generator to draw from: the CPU's default one stands for that of the device."""
    if generator is default_generator or generator is None:
        return cuda_generator if not HERE.ordinal else generator_of(HERE.ordinal)
    if not isinstance(generator, PhiloxGenerator):
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")
    return generator


def blocks_for(count: int, unroll: int) -> tuple[int, int]:
    """How many blocks draw `count` numbers, and how many words each thread takes at most."""
    blocks = min(-(-count // THREADS), resident_threads() // THREADS)
    return blocks, ((count - 1) // (THREADS * blocks * unroll) + 1) * 4


@cache
def _compiled(distribution: str, dtype: str, wide: bool) -> Any:
    layout = Struct("=qQQQQQq" if distribution == INTEGERS else "=qQQQQddd")
    return driver().compile(draw_source(distribution, dtype, wide)), layout.pack


def _draw(out: DeviceArray, generator: Any, distribution: str, wide: bool, *parameters: Any) -> bool:
    """Fill `out`, whose elements are drawn in the order in which they lie in memory."""
    source = source_of(generator)
    count = out.size
    if not count:
        return True
    turned, target = _as_it_lies(out)
    unroll = 2 if wide or (name_of(out.dtype) == "float64" and distribution != INTEGERS) else 4
    blocks, words = blocks_for(count, unroll)
    launch, pack = _compiled(distribution, name_of(out.dtype), wide)
    launch(blocks, THREADS, pack(count, target.pointer, *position(source, words), *parameters))
    if target is not turned:
        turned[...] = target
    return True


def _as_it_lies(out: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """An array with its dimensions in the order of memory, and what to draw into: that, or a copy without gaps."""
    if out.form.flags.c_contiguous:
        return out, out
    order = sorted(range(out.ndim), key=lambda axis: (-abs(out.strides[axis]), axis))
    turned = out.transpose(order)
    return turned, turned if turned.flags.c_contiguous else empty(turned.shape, out.dtype)


def uniform(self: DeviceArray, generator: Any, low: float = 0.0, high: float = 1.0) -> Any:
    if name_of(self.dtype) not in _FLOATS or not -1e4 <= low <= high <= 1e4:
        return None  # complex numbers, and bounds that may be refused
    return _draw(self, generator, "uniform_", False, high - low, low, high)


def normal(self: DeviceArray, generator: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    if name_of(self.dtype) not in _FLOATS or not std >= 0:
        return None
    return _draw(self, generator, "normal_", False, mean, std, 0.0)


def log_normal(self: DeviceArray, generator: Any, mean: float = 1.0, std: float = 2.0) -> Any:
    if name_of(self.dtype) not in _FLOATS or not std > 0:
        return None
    return _draw(self, generator, "log_normal_", False, mean, std, 0.0)


def exponential(self: DeviceArray, generator: Any, rate: float = 1.0) -> Any:
    if name_of(self.dtype) not in _FLOATS or not 0 < rate < float("inf"):
        return None
    return _draw(self, generator, "exponential_", False, rate, _EPSILON.get(name_of(self.dtype), 2.0**-23), 0.0)


def cauchy(self: DeviceArray, generator: Any, median: float = 0.0, sigma: float = 1.0) -> Any:
    if name_of(self.dtype) not in _FLOATS or not sigma > 0:
        return None
    return _draw(self, generator, "cauchy_", False, median, sigma, _EPSILON.get(name_of(self.dtype), 2.0**-23))


def geometric(self: DeviceArray, generator: Any, p: float) -> Any:
    if name_of(self.dtype) not in (*_FLOATS, "int8", "uint8", "int16", "int32", "int64") or not 0 < p < 1:
        return None
    return _draw(self, generator, "geometric_", False, p, 0.0, 0.0)


def bernoulli_number(self: DeviceArray, generator: Any, p: Any) -> Any:
    if isinstance(p, DeviceArray) or not 0 <= p <= 1 or self.dtype.kind == "c":
        return None
    return _draw(self, generator, "bernoulli_number_", False, p, 0.0, 0.0)


def integers_between(self: DeviceArray, generator: Any, low: int, high: int | None) -> Any:
    """Whole numbers from `low` on, below `high`."""
    if high is None or low >= high or self.dtype.kind == "c" or not _holds(self.dtype, low, high):
        return None
    span = high - low
    return _draw(self, generator, INTEGERS, span >= _FEW, span, low)


def _holds(dtype: np.dtype[Any], low: int, high: int) -> bool:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        least, most = int(limits.min), int(limits.max)
        return least <= low and high - 1 <= most
    most = 1 << _LARGEST_INTEGER.get(name_of(dtype), 1)
    return -most <= low and high - 1 <= most


def integers(self: DeviceArray, generator: Any) -> Any:
    """Whole numbers over the range of the type."""
    name = name_of(self.dtype)
    if name in _LARGEST_INTEGER:
        return _draw(self, generator, INTEGERS, name == "float64", 2 ** _LARGEST_INTEGER[name] + 1, 0)
    if name == "bool":
        return _draw(self, generator, INTEGERS, False, 2, 0)
    if name == "uint64" or self.dtype.kind not in "iu":
        return None
    return _draw(self, generator, INTEGERS, name == "int64", int(np.iinfo(self.dtype).max) + 1, 0)


def bernoulli_tensor(self: DeviceArray, generator: Any, p: Any) -> Any:
    """Ones with a probability for each element."""
    if name_of(p.dtype) not in _FLOATS or p.shape != self.shape or self.dtype.kind == "c" or not self.size:
        return None
    target = self if self.flags.c_contiguous else empty(self.shape, self.dtype)
    given = p if p.flags.c_contiguous else p.copy()
    drawn = position(source_of(generator), 10)
    launch, pack = _compiled_bernoulli(name_of(given.dtype), name_of(self.dtype))
    launch(-(-self.size // (4 * THREADS)), THREADS, pack(self.size, target.pointer, *drawn, given.pointer))
    if target is not self:
        self[...] = target
    return True


def bernoulli(self: DeviceArray, generator: Any) -> Any:
    """Ones with the probability that stands in each place, else zeros."""
    result = empty(self.shape, self.dtype)
    return None if bernoulli_tensor(result, generator, self) is None else result


@cache
def _compiled_bernoulli(probability: str, dtype: str) -> Any:
    return driver().compile(bernoulli_source(probability, dtype)), Struct("=qQQQQQ").pack


def dropout_mask(self: DeviceArray, generator: Any, keep: float, itemsize: int) -> Any:
    """The mask of dropout on elements of `itemsize` bytes: true with probability `keep`."""
    count = self.size
    turned, target = _as_it_lies(self)
    width = 16 // itemsize if target is turned else 1
    while width > 1 and count % width:
        width //= 2
    blocks, words = blocks_for(count, 4)
    drawn = position(source_of(generator), words)
    launch, pack = _compiled_mask(width)
    launch(blocks, THREADS, pack(count, target.pointer, *drawn, keep))
    if target is not turned:
        turned[...] = target
    return True


@cache
def _compiled_mask(width: int) -> Any:
    return driver().compile(mask_source(width)), Struct("=qQQQQd").pack


def dropout(input: DeviceArray, generator: Any, keep: float) -> tuple[DeviceArray, DeviceArray] | None:
    """The elements that a mask keeps, scaled up, and the mask, in one kernel; None: the one after the other."""
    key = input.layout, HERE.ordinal
    try:
        plan = _dropouts[key]
    except KeyError:
        if len(_dropouts) >= _MOST_PLANS:
            _dropouts.clear()
        plan = _dropouts[key] = _planned_dropout(input.form)
    if plan is None or input.pointer % 16:
        return None
    of_result, of_mask, count, blocks, words, launch, pack = plan
    result, mask = of_form(of_result), of_form(of_mask)
    drawn = position(source_of(generator), words)
    launch(blocks, THREADS, pack(count, mask.pointer, *drawn, keep, input.pointer, result.pointer, 1 / keep))
    return result, mask


_dropouts: dict[Any, Any] = of_level({})
"""By layout and device what `dropout` needs of such arrays; None: it does nothing for them."""
_MOST_PLANS = 1024


def _planned_dropout(form: Any) -> tuple[Any, ...] | None:
    """The forms of result and mask, how many elements there are, how they are divided, and the kernel."""
    if not form.flags.c_contiguous or name_of(form.dtype) not in _FLOATS or not form.size:
        return None
    width = 16 // form.itemsize
    while width > 1 and form.size % width:
        width //= 2
    kernel = _compiled_dropout(width, name_of(form.dtype))
    forms = form_of(form.shape, form.dtype), form_of(form.shape, _BOOL)
    return *forms, form.size, *blocks_for(form.size, 4), *kernel


@cache
def _compiled_dropout(width: int, dtype: str) -> Any:
    return driver().compile(mask_source(width, dtype)), Struct("=qQQQQdQQd").pack
