"""Random arrays: distributions over a Generator's stream, number for number those of PyTorch on the CPU.

Each `fill_*` function writes into an array of any strides. PyTorch fills in the order of memory, not of indices, so the
numbers of a transposed array are the transposed numbers. Where PyTorch's compiled code fuses a multiplication with the
addition that follows, so does `multiply_add`.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.narrow import as_type, is_complex, strided, widened
from ..arrays.quick import broadcast, name_of
from ..backend import FUNCTIONS, LARGE, beside, read, to_host
from ..dtype import C_NAMES, LEGACY_NAMES, WIDE_TYPES, from_numpy_dtype
from ..generator import Generator
from ..geometry.layout import contiguous_array, empty_like
from ..process.processor import ON_X86_64
from ..process.reproducibility import REPRODUCIBILITY
from . import c_library
from .fused_multiply_add import multiply_add, multiply_add32
from .normal_sampling import NORMAL_BLOCK, normal_blocks

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""Bits of the significand: the largest n for which all integers up to 2**n are exact."""
_LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127, "float32": (2 - 2.0**-23) * 2.0**127,
            "float64": sys.float_info.max}  # fmt: skip
_INTEGER_LIMITS = (
    {"bool": (0, 1)}
    | {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
    | {f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)}
)
BAREBONES_UNSIGNED = ("uint16", "uint32", "uint64")
"""The integer types that most of PyTorch's distributions do not know."""
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


# Making ---------------------------------------------------------------------------------------------------------------


def uniform(shape: Sequence[int], dtype: np.dtype[Any], generator: Generator) -> Array:
    """A new array of numbers in [0, 1): the fast path of `rand`."""
    if dtype.char in "fd":
        count = shape[0] if len(shape) == 1 else math.prod(shape)
        units = generator.unit32(count) if dtype.char == "f" else generator.unit64(count)
        return units if len(shape) == 1 else units.reshape(shape)
    out = np.empty(shape, dtype)
    fill_uniform(out, generator)
    return out


def normal(shape: Sequence[int], dtype: np.dtype[Any], generator: Generator) -> Array:
    """A new array of standard normal numbers."""
    out = np.empty(shape, dtype)
    fill_normal(out, generator)
    return out


def multinomial(
    weights: Array, count: int, replacement: bool, generator: Any, fill: Callable[[Any, Any], object] | None = None
) -> Array:
    """Indices drawn with probabilities proportional to `weights`, `count` from each row.

    `fill` draws exponential variables where `generator` is not one of the host's.
    """
    check_multinomial(weights, count, replacement)
    if replacement and count > 1:
        rows = weights.reshape(-1, weights.shape[-1])
        found = _multinomial_by_search(rows, count, generator).reshape(*weights.shape[:-1], count)
        drawn: Array = beside(found, weights)
        return drawn
    check_multinomial_weights(weights)
    keys = empty_like(weights, None, weights.dtype)  # drawn in the order of its memory, which is that of the weights
    (fill or fill_exponential)(keys, generator)
    # The smallest waiting time wins: exponential variables divided by their rates.
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = _computable(rounded(_computable(weights) / _computable(keys), weights.dtype))
    if count == 1:
        chosen: Array = np.argmax(scores, axis=-1, keepdims=True)
    else:
        chosen = contiguous_array(np.argsort(-scores, axis=-1, kind="stable")[..., :count])
    return chosen.astype(np.int64, copy=False)  # positions are 32 bits wide in the browser


# Filling --------------------------------------------------------------------------------------------------------------


def fill_uniform(out: Array, generator: Generator, low: float = 0.0, high: float = 1.0) -> None:
    """Numbers in [low, high)."""
    if is_complex(out.dtype):
        if out.size:
            fill_uniform(_real_view(out), generator, low, high)
        return
    name = _float_name(out.dtype, "check_uniform_bounds")
    largest = _LARGEST[name]
    for bound, value in (("from", low), ("to", high)):
        if not -largest <= value <= largest:
            raise RuntimeError(f"{bound} is out of bounds for {_c_name(out.dtype)}: {value} with dtype {name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{legacy_name(out.dtype)}>::max(), but found to={high} "
            f"and from={low} which result in to-from to exceed the limit"
        )
    if out.size == 0:
        return
    values: Array
    if name == "float64":
        values = generator.unit64(out.size)
        if low != 0.0 or high != 1.0:
            values = multiply_add(values, high - low, low)
    else:
        values = generator.unit32(out.size)
        if low != 0.0 or high != 1.0:
            bottom, top = np.float32(low), np.float32(high)
            values = multiply_add32(values, top - bottom, bottom)
    values = rounded(values, out.dtype)
    # Rounding may have reached the upper end, which does not belong to the range.
    ends = rounded(np.array([low, high]), out.dtype)
    reached = values == ends[1]
    if read(reached.any()):
        values[reached] = ends[0]
    _store(out, values)


def fill_normal(out: Array, generator: Generator, mean: float = 0.0, std: float = 1.0) -> None:
    """Fill an array with normally distributed numbers."""
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if out.size == 0:
        return
    if is_complex(out.dtype):
        # Half of the variance each for the real and the imaginary part.
        fill_normal(_real_view(out), generator, mean, std / math.sqrt(2.0))
        return
    name = _float_name(out.dtype, "normal_kernel_cpu")
    if out.size < NORMAL_BLOCK or not out.flags.c_contiguous:
        samples = generator.scalar_normals(out.size)
        _store(out, rounded(multiply_add(samples, std, mean), out.dtype))
    elif name == "float64":
        _store(out, normal_blocks(generator.unit64, out.size, mean, std))
    elif name == "float32":
        _store(out, normal_blocks(generator.unit32, out.size, mean, std))
    else:
        _store(out, rounded(normal_blocks(generator.unit32, out.size, mean, std, spare_draws=False), out.dtype))


def fill_log_normal(out: Array, generator: Generator, mean: float = 1.0, std: float = 2.0) -> None:
    """The exponential function of normally distributed numbers."""
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    if out.size == 0:
        return
    _float_name(out.dtype, "log_normal_cpu")
    samples = generator.scalar_normals(out.size)
    _store(out, rounded(c_library.exp(multiply_add(samples, std, mean)), out.dtype))


def fill_exponential(out: Array, generator: Generator, rate: float = 1.0) -> None:
    """Exponentially distributed numbers with mean 1 / rate."""
    if not rate > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate}")
    if out.size == 0:
        return
    _check_continuous("Exponential", out.dtype, legacy_name(out.dtype))
    values = c_library.log1p(-generator.unit64(out.size))
    values *= -1.0 / rate
    _store(out, rounded(values, out.dtype))


def fill_cauchy(out: Array, generator: Generator, median: float = 0.0, sigma: float = 1.0) -> None:
    """Numbers of the Cauchy distribution."""
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    _check_continuous("Cauchy", out.dtype, _c_name(out.dtype))
    values = generator.unit64(out.size)
    values -= 0.5
    values *= math.pi
    _store(out, rounded(multiply_add(c_library.tan(values), sigma, median), out.dtype))


def fill_geometric(out: Array, generator: Generator, p: float) -> None:
    """The number of trials up to the first success, each succeeding with probability `p`."""
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    if out.size == 0:
        return
    if out.dtype.kind in "bc" or name_of(out.dtype) in BAREBONES_UNSIGNED:
        raise not_implemented("geometric_cpu", out.dtype)
    values = np.ceil(c_library.log(generator.unit64(out.size)) / math.log1p(-p))
    _store(out, rounded(values, out.dtype))


def fill_bernoulli(out: Array, generator: Generator, p: float | Array) -> None:
    """Ones with probability `p` (a number, or an array that broadcasts to `out`), else zeros."""
    scalar = isinstance(p, (int, float))
    if scalar and not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    if out.size == 0:
        return
    if out.dtype.kind == "c" or name_of(out.dtype) in BAREBONES_UNSIGNED:
        raise not_implemented("bernoulli_scalar_cpu_" if scalar else "bernoulli_tensor_cpu_self_", out.dtype)
    if not isinstance(p, (int, float)):
        _fill_bernoulli_by_element(out, generator, p)
    elif not _thrown(out, generator, p):
        _store(out, rounded(generator.unit64(out.size) < p, out.dtype))


def _thrown(out: Array, generator: Generator, p: float) -> bool:
    """Fill a large array by a generated kernel; whether there is one for it."""
    if (
        type(out) is not np.ndarray
        or out.size < LARGE
        or (kernels := FUNCTIONS[np.ndarray]["random"]) is None
        or not kernels.can_throw(out)
    ):
        return False
    kernels.throw_coins(out, generator.draw32(2 * out.size), p)
    return True


def _fill_bernoulli_by_element(out: Array, generator: Generator, p: Array) -> None:
    if name_of(p.dtype) not in _DIGITS:
        raise not_implemented("bernoulli_tensor_cpu_p_", p.dtype)
    inside = (p >= 0) & (p <= 1)
    if not read(inside.all()):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: "
            f"the probability {p[~inside][0]} is outside [0, 1]"
        )
    order = _memory_order(out)
    chances = broadcast(p, out.shape).transpose(order)
    units = generator.unit64(out.size) if p.dtype == np.float64 else generator.unit32(out.size)
    out.transpose(order)[...] = beside(units.reshape(chances.shape), out) < chances.astype(units.dtype, copy=False)


def fill_random(out: Array, generator: Generator) -> None:
    """Whole numbers over the type's range: from 0 to the largest integer, or to 2**digits for a float type."""
    dtype = out.dtype
    if out.size == 0:
        return
    name = name_of(dtype)
    if dtype.kind == "c" or name in BAREBONES_UNSIGNED:
        raise not_implemented("random_kernel_cpu", dtype)
    words: Array = generator.draw64(out.size) if name in ("float64", "int64") else generator.draw32(out.size)
    if name in _DIGITS:
        values = words % words.dtype.type(2 ** _DIGITS[name] + 1)
    else:
        values = words & words.dtype.type(_INTEGER_LIMITS[name][1])
    _store(out, rounded(values, dtype))


def fill_random_between(out: Array, generator: Generator, low: int, high: int | None) -> None:
    """Whole numbers in [low, high), or from `low` to the type's largest when `high` is None."""
    dtype = out.dtype
    if high is None and low == _INT64_MIN:
        _fill_all_64_bits(out, generator)
        return
    if dtype.kind == "c":
        raise RuntimeError(f"random_ handles only integral, floating-point and boolean types, not {dtype.name}")
    low, last = _inclusive_range(dtype, low, high)
    _check_whole_number_bounds(dtype, low, last)
    count = last - low + 1
    # The remainder of a 32-bit word would be visibly uneven for larger ranges.
    if count >= 2**28:
        words = generator.draw64(out.size)
        words %= np.uint64(count)
        words += np.uint64(low % 2**64)
        values = words.view(np.int64)
    else:
        values = (generator.draw32(out.size) % np.uint32(count)).astype(np.int64)
        if low != 0:
            values += low
    _store(out, rounded(values, dtype))


def _fill_all_64_bits(out: Array, generator: Generator) -> None:
    if out.size == 0:
        return
    name = name_of(out.dtype)
    if name in ("bool", "float16", *BAREBONES_UNSIGNED) or out.dtype.kind == "c":
        raise not_implemented("random_full_64_bits_range_kernel_cpu", out.dtype)
    if name not in ("int64", "float64", "float32", "bfloat16"):
        raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
    _store(out, rounded(generator.draw64(out.size).view(np.int64), out.dtype))


# Memory order and rounding --------------------------------------------------------------------------------------------


def _memory_order(out: Array) -> list[int]:
    """The dimensions from the largest stride to the smallest."""
    return sorted(range(out.ndim), key=lambda dimension: -out.strides[dimension])


def _store(out: Array, values: Array) -> None:
    """Write the flat `values` into `out` in the order of its memory."""
    if out.flags.c_contiguous:
        out[...] = beside(values.reshape(out.shape), out)
        return
    in_memory_order = out.transpose(_memory_order(out))
    in_memory_order[...] = beside(values.reshape(in_memory_order.shape), out)


def rounded(values: Array, dtype: np.dtype[Any]) -> Array:
    """`values` in `dtype`; bfloat16, and on x86-64 float16, are reached through float32, as in PyTorch."""
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if name_of(dtype) in (_THROUGH_FLOAT32 if ON_X86_64 or REPRODUCIBILITY.machine else _THROUGH_FLOAT32[:1]):
            values = values.astype(np.float32)
        return as_type(values, dtype) if dtype in WIDE_TYPES else values.astype(dtype)


_THROUGH_FLOAT32 = "bfloat16", "float16"


def _computable(values: Array) -> Array:
    """`values` in a type that NumPy computes in as PyTorch does: float32 for the 2-byte floats."""
    return values.astype(np.float32) if values.dtype.itemsize == 2 else values


def _real_view(out: Array) -> Array:
    """A complex array as real numbers with one more dimension of two parts."""
    part = out.real if out.dtype.kind == "c" else out.view([("real", np.float16), ("imag", np.float16)])["real"]
    parts: Array = strided(part, (*out.shape, 2), (*out.strides, part.itemsize))
    return parts


# Categories ----------------------------------------------------------------------------------------------------------


def _multinomial_by_search(weights: Array, count: int, generator: Generator) -> npt.NDArray[np.int64]:
    rows = _computable(weights)
    if read((rows < 0).any()) or read(np.isnan(rows).any()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not read(np.isfinite(rows).all()):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    cumulative = np.cumsum(rows, axis=-1, dtype=rows.dtype)
    if read((cumulative[:, -1:] <= 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    cumulative /= cumulative[:, -1:]
    units = generator.unit64(len(rows) * count).reshape(len(rows), count)
    found = np.empty(units.shape, dtype=np.int64)
    for row, draws, indices in zip(to_host(cumulative).astype(np.float64), units, found, strict=True):
        indices[...] = np.searchsorted(row, draws, side="left")
    return found


# Checks ---------------------------------------------------------------------------------------------------------------


def check_multinomial(weights: Array, count: int, replacement: bool) -> None:
    """Refuse what cannot be drawn, as far as it can be seen without reading elements."""
    if name_of(weights.dtype) not in _DIGITS:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {legacy_name(weights.dtype)}"
        )
    if weights.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, but its shape is {list(weights.shape)}")
    if count <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, got {count}")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {count} > {weights.shape[-1]}"
        )
    if weights.shape[-1] > 2**24:
        raise RuntimeError(f"number of categories cannot exceed 2^24, got {weights.shape[-1]}")


def check_multinomial_weights(weights: Array) -> None:
    """Refuse weights that are no probabilities."""
    rows = _computable(weights)
    if not read(((rows >= 0) & (rows < np.inf)).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if read((rows.sum(axis=-1) == 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _inclusive_range(dtype: np.dtype[Any], low: int, high: int | None) -> tuple[int, int]:
    """The first and the last number of [low, high), moved inwards to numbers that `dtype` can hold."""
    is_float = name_of(dtype) in _DIGITS
    if high is None:
        if not is_float:
            return low, _INTEGER_LIMITS[name_of(dtype)][1]
        last = 2 ** _DIGITS[name_of(dtype)]
        low = _raised_to_representable(dtype, low)
        if low >= last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, "
                f"but got from={low} > to_inc={last}"
            )
        return low, last
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if is_float:
        low, high = _raised_to_representable(dtype, low), _lowered_to_representable(dtype, high)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={high}"
            )
    return low, high - 1


def _raised_to_representable(dtype: np.dtype[Any], low: int) -> int:
    after = _through_dtype(dtype, low + 1)
    if after >= low:
        return low
    return after + (1 << (abs(low + 1).bit_length() - _DIGITS[name_of(dtype)]))


def _lowered_to_representable(dtype: np.dtype[Any], high: int) -> int:
    before = _through_dtype(dtype, high - 1)
    if before < high:
        return high
    return before - (1 << (abs(high - 1).bit_length() - _DIGITS[name_of(dtype)]))


def _through_dtype(dtype: np.dtype[Any], value: int) -> int:
    """`value` rounded to `dtype` and back to a 64-bit integer, saturating."""
    held = float(widened(rounded(np.array(value), dtype)))
    return int(min(max(held, _INT64_MIN), _INT64_MAX)) if math.isfinite(held) else _INT64_MAX


def _check_whole_number_bounds(dtype: np.dtype[Any], low: int, last: int) -> None:
    smallest: float
    largest: float
    if name_of(dtype) in _DIGITS:
        smallest, largest = -_LARGEST[name_of(dtype)], _LARGEST[name_of(dtype)]
    else:
        smallest, largest = _INTEGER_LIMITS[name_of(dtype)]
        largest = min(largest, _INT64_MAX)
    for bound, value in (("from", low), ("to - 1", last)):
        if not smallest <= value <= largest:
            raise RuntimeError(f"{bound} is out of bounds for {_c_name(dtype)}: {value} with dtype {name_of(dtype)}")
        if name_of(dtype) in _DIGITS and abs(value) > 2 ** _DIGITS[name_of(dtype)]:
            digits = _DIGITS[name_of(dtype)]
            warnings.warn(
                f"{bound} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {_c_name(dtype)} "
                "can support discrete uniform distribution only within this range.",
                stacklevel=3,
            )


def _check_continuous(distribution: str, dtype: np.dtype[Any], shown: str) -> None:
    if name_of(dtype) not in _DIGITS:
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. "
            f"dtype must be a floating point but you specified {shown}"
        )


def _float_name(dtype: np.dtype[Any], operation: str) -> str:
    if name_of(dtype) not in _DIGITS:
        raise not_implemented(operation, dtype)
    return name_of(dtype)


def not_implemented(operation: str, dtype: np.dtype[Any]) -> NotImplementedError:
    return NotImplementedError(f"\"{operation}\" not implemented for '{legacy_name(dtype)}'")


def legacy_name(dtype: np.dtype[Any]) -> str:
    return LEGACY_NAMES[from_numpy_dtype(dtype)]


def _c_name(dtype: np.dtype[Any]) -> str:
    return C_NAMES[name_of(dtype)]
