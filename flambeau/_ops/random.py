"""Random tensors: the factories, the in-place fills, and the seed and state of the default generator.

The numbers come from `_core.sampling`; here are the signatures, the graph and the devices. What a fill overwrites gets
a zero gradient, and so do the parameters of a distribution: sampling has no derivative.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import permutation, sampling
from .._core.device import META
from .._core.dtype import dtype as DType
from .._core.dtype import int64
from .._core.generator import Generator, default_generator
from .._core.kind import Kind
from .._core.modes import THREAD
from .._core.tensor import Tensor
from .create import allocated, chosen_kind, made
from .dispatch import Array, Primitive, primitive
from .inplace import before_change, check_no_overlap, check_writable, rebase_history
from .like import memory_like
from .meta import empty_meta
from .out import store
from .registry import export, public
from .view import as_shape

Make = Callable[[Array, Generator], None]


def _zeros(grad: Tensor) -> Any:
    return grad.new_zeros(grad.shape)


def _source(generator: Generator | None) -> Generator:
    return default_generator if generator is None else generator


# Factories ------------------------------------------------------------------------------------------------------------


def _filled(shape: tuple[int, ...], kind: Kind, fill: Make, generator: Generator | None) -> Array:
    if min(shape, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if kind.device is META:
        return empty_meta(shape, kind.dtype.numpy)
    array = allocated(shape, kind)
    fill(array, _source(generator))
    return array


def _finished(array: Array, kind: Kind, requires_grad: bool, out: Tensor | None) -> Tensor:
    result = made(array, kind, requires_grad)
    return result if out is None else store(result, out)


def _kind_for(dtype: Any, device: Any, out: Tensor | None, fallback: DType | None = None) -> Kind:
    """The numbers depend on the element type: without `dtype=` that of `out` decides."""
    return out._kind if dtype is None and out is not None else chosen_kind(dtype, device, fallback)


def rand(
    *size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers in [0, 1), all equally likely."""
    kind = _kind_for(dtype, device, out)
    shape = as_shape(size)
    if kind.device is META or min(shape, default=0) < 0 or math.prod(shape) >= 2**60:  # it says what is wrong
        array = _filled(shape, kind, sampling.fill_uniform, generator)
    else:
        array = sampling.uniform(shape, kind.dtype.numpy, _source(generator))
    return _finished(array, kind, requires_grad, out)


def randn(
    *size: Any, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None,
) -> Tensor:  # fmt: skip
    """Numbers of the standard normal distribution."""
    kind = _kind_for(dtype, device, out)
    return _finished(_filled(as_shape(size), kind, sampling.fill_normal, generator), kind, requires_grad, out)


def randint(
    *bounds_and_size: Any, low: int | None = None, high: int | None = None, size: Any = None,
    generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Whole numbers in [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    given = list(bounds_and_size)
    if size is None:
        if not given:
            raise TypeError("randint() missing the required argument 'size'")
        size = given.pop()
    first, last = _bounds("randint", given, low, high)
    kind = _kind_for(dtype, device, out, int64)
    array = _filled(as_shape((size,)), kind, lambda into, source: _between(into, source, first, last), generator)
    return _finished(array, kind, requires_grad, out)


def _bounds(name: str, given: list[Any], low: int | None, high: int | None) -> tuple[int, int]:
    """`low` and `high` from one or two positional numbers and the keywords."""
    if high is None:
        if not given:
            raise TypeError(f"{name}() missing the required argument 'high'")
        high = given.pop()
    if given and low is None:
        low = given.pop()
    if given:
        raise TypeError(f"{name}() got too many positional arguments: it takes (high, size) or (low, high, size)")
    return _whole(0 if low is None else low), _whole(high)


def _whole(value: Any) -> int:
    return int(value.item()) if isinstance(value, Tensor) else operator.index(value)


def _between(into: Array, source: Generator, low: int, high: int | None) -> None:
    sampling.fill_random_between(into, source, low, high)


def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers from 0 to n - 1 in random order."""
    kind = _kind_for(dtype, device, out, int64)
    if kind.device is META:
        return made(empty_meta((n,), kind.dtype.numpy), kind, requires_grad)
    return _finished(permutation.randperm(n, kind.dtype.numpy, _source(generator)), kind, requires_grad, out)


for _factory in (rand, randn, randint, randperm):
    export(_factory, _factory.__name__)


def _like(
    input: Tensor, dtype: Any, device: Any, fill: Make, generator: Generator | None, requires_grad: bool,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    kind = chosen_kind(dtype or input.dtype, device or input.device)
    array = memory_like(input, kind, memory_format, None)
    if kind.device is not META:
        fill(array, _source(generator))
    return made(array, kind, requires_grad)


@public(method=False)
def rand_like(
    input: Tensor, *, generator: Generator | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`rand` with the shape, dtype and device of `input`."""
    return _like(input, dtype, device, sampling.fill_uniform, generator, requires_grad, memory_format)


@public(method=False)
def randn_like(
    input: Tensor, *, generator: Generator | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`randn` with the shape, dtype and device of `input`."""
    return _like(input, dtype, device, sampling.fill_normal, generator, requires_grad, memory_format)


@public(method=False)
def randint_like(
    input: Tensor, *bounds: Any, low: int | None = None, high: int | None = None, generator: Generator | None = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`randint(low, high)` with the shape, dtype and device of `input`."""
    first, last = _bounds("randint_like", list(bounds), low, high)
    return _like(
        input, dtype, device, lambda into, source: _between(into, source, first, last), generator, requires_grad,
        memory_format,
    )  # fmt: skip


# Sampling with parameters that are tensors ----------------------------------------------------------------------------


@primitive("BernoulliBackward0", self=_zeros)
def _bernoulli(self: Array, generator: Any) -> Array:
    result = np.empty_like(self)
    sampling.fill_bernoulli(result, generator, self)
    return result


@public(out=True)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probability that stands in each place of `input` (or `p` everywhere), else zeros."""
    chance = p
    if input.is_meta or chance is not None:
        return _like(
            input,
            None,
            None,
            lambda into, source: sampling.fill_bernoulli(into, source, chance or 0.0),
            generator,
            False,
        )
    return _bernoulli(input, _source(generator))  # type: ignore[no-any-return]


@primitive(None)
def _multinomial(self: Array, num_samples: int, replacement: bool, generator: Any) -> Array:
    return sampling.multinomial(self, num_samples, replacement, generator)


@public(out=True)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with probabilities proportional to each row of `input`."""
    if input.is_meta:
        kind = chosen_kind(int64, META)
        return made(empty_meta((*input._array.shape[:-1], num_samples), kind.dtype.numpy), kind, False)
    return _multinomial(input, num_samples, replacement, _source(generator))  # type: ignore[no-any-return]


def _standard_normals(shape: tuple[int, ...], like: Array, generator: Generator, std: float = 1.0) -> Array:
    result = np.empty(shape, like.dtype)
    sampling.fill_normal(result, generator, 0.0, std)
    return result


def _check_deviations(std: Array) -> None:
    if std.size and not (std >= 0).all():
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but the smallest is {std.min()}")


@primitive("NormalBackward1", mean=_zeros)
def _normal_around(mean: Array, std: float, generator: Any) -> Array:
    return _standard_normals(mean.shape, mean, generator, std) + mean


@primitive("NormalBackward2", std=_zeros)
def _normal_of_widths(mean: float, std: Array, generator: Any) -> Array:
    _check_deviations(std)
    return _standard_normals(std.shape, std, generator) * std + std.dtype.type(mean)


@primitive(
    "NormalBackward3",
    mean=lambda grad, mean_sym_sizes: grad.new_zeros(mean_sym_sizes),
    std=lambda grad, std_sym_sizes: grad.new_zeros(std_sym_sizes),
)
def _normal_each(mean: Array, std: Array, generator: Any) -> Array:
    _check_deviations(std)
    shape = np.broadcast_shapes(mean.shape, std.shape)
    result = _standard_normals(shape, mean, generator)
    result *= std.astype(mean.dtype, copy=False)
    result += mean
    return result


def normal(
    mean: Tensor | float, std: Tensor | float = 1.0, size: Any = None, *, generator: Generator | None = None,
    out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers: `mean` and `std` are tensors, or numbers together with a `size`."""
    source = _source(generator)
    if isinstance(mean, Tensor):
        if not isinstance(std, Tensor) and not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        result = _normal_each(mean, std, source) if isinstance(std, Tensor) else _normal_around(mean, std, source)
    elif isinstance(std, Tensor):
        result = _normal_of_widths(mean, std, source)
    elif size is None:
        raise TypeError("normal() missing the required argument 'size': mean and std are both numbers")
    else:
        kind = _kind_for(dtype, device, out)
        centre, width = mean, std
        array = _filled(
            as_shape((size,)), kind, lambda into, chosen: sampling.fill_normal(into, chosen, centre, width), source
        )
        return _finished(array, kind, requires_grad, out)
    return result if out is None else store(result, out)


export(normal, "normal")


# In-place fills -------------------------------------------------------------------------------------------------------


def _history(node: str) -> Primitive:
    """A primitive that changes nothing and records `node`, whose gradient is zero."""

    def overwritten(self: Array) -> Array:
        return self

    overwritten.__name__ = f"overwritten_{node}"
    return primitive(node, self=_zeros)(overwritten)


_HISTORIES = {
    node: _history(node)
    for node in (
        "UniformBackward0", "NormalBackward0", "LogNormalBackward0", "ExponentialBackward0", "CauchyBackward0",
        "GeometricBackward0", "BernoulliBackward1", "BernoulliBackward2", "RandomBackward0", "RandomBackward1",
        "RandomBackward2",
    )
}  # fmt: skip


def _fill(target: Tensor, node: str, fill: Make, generator: Generator | None) -> Tensor:
    """Write random numbers into the memory of `target` itself: their order depends on its strides."""
    check_writable(target)
    check_no_overlap(target)
    if not target.is_meta:
        fill(target._array, _source(generator))
    target._changed()
    if THREAD.modes.grad and target.requires_grad:
        result = _HISTORIES[node](before_change(target, (), {}))
        rebase_history(target, result._grad_fn, result._output_nr)
    return target


@public(function=False)
def uniform_(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers in [from, to)."""
    return _fill(
        input, "UniformBackward0", lambda into, source: sampling.fill_uniform(into, source, from_, to), generator
    )


@public(function=False)
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers."""
    return _fill(
        input, "NormalBackward0", lambda into, source: sampling.fill_normal(into, source, mean, std), generator
    )


@public(function=False)
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normally distributed."""
    return _fill(
        input, "LogNormalBackward0", lambda into, source: sampling.fill_log_normal(into, source, mean, std), generator
    )


@public(function=False)
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate `lambd`."""
    return _fill(
        input, "ExponentialBackward0", lambda into, source: sampling.fill_exponential(into, source, lambd), generator
    )


@public(function=False)
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    return _fill(
        input, "CauchyBackward0", lambda into, source: sampling.fill_cauchy(into, source, median, sigma), generator
    )


@public(function=False)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials up to a first success of probability `p`."""
    return _fill(input, "GeometricBackward0", lambda into, source: sampling.fill_geometric(into, source, p), generator)


@public(function=False)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability `p`, a number or a tensor of them, else zeros."""
    chances = p._array if isinstance(p, Tensor) else p
    node = "BernoulliBackward1" if isinstance(p, Tensor) else "BernoulliBackward2"
    return _fill(input, node, lambda into, source: sampling.fill_bernoulli(into, source, chances), generator)


@public(function=False)
def random_(input: Tensor, *bounds: Any, generator: Generator | None = None) -> Tensor:
    """Fill with whole numbers: `random_()` over the type's range, `random_(to)`, `random_(from, to)`."""
    if not bounds:
        return _fill(input, "RandomBackward2", sampling.fill_random, generator)
    if len(bounds) > 2:
        raise TypeError(f"random_() takes at most (from, to), but got {len(bounds)} numbers")
    low = _whole(bounds[0]) if len(bounds) == 2 else 0
    high = None if bounds[-1] is None else _whole(bounds[-1])
    node = "RandomBackward0" if len(bounds) == 2 else "RandomBackward1"
    return _fill(input, node, lambda into, source: _between(into, source, low, high), generator)


# The default generator ------------------------------------------------------------------------------------------------


def manual_seed(seed: Any) -> Generator:
    """Start the random numbers of all devices again from `seed`; returns the default generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start from a seed taken from the operating system, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator began from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue from a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


for _function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    export(_function, _function.__name__)
