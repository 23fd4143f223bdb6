"""Random tensors: the factories, the in-place fills, and the seed and state of the default generator.

The numbers come from `_core.random.sampling`; here are the signatures, the graph and the devices. What a fill
overwrites gets a zero gradient, and so do the parameters of a distribution: sampling has no derivative.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.arrays.abstract import empty_meta
from ..._core.arrays.quick import joint_shape
from ..._core.backend import beside, read
from ..._core.device import CPU
from ..._core.dtype import LEGACY_NAMES, int64
from ..._core.dtype import dtype as DType
from ..._core.generator import Generator, default_generator
from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.random import permutation, sampling
from ..._core.random.philox import seed_all_devices
from ..._core.size import fits_int64
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..._core.version import note_change
from ..._dispatch.arguments.scalar import whole
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.call.elementwise import shape_error
from ..._dispatch.changes.history import end_change
from ..._dispatch.changes.inplace import before_change, check_no_overlap, check_writable
from ..._dispatch.changes.out import resize_output, store
from ..._dispatch.dispatch import Array, Primitive, primitive
from ..._dispatch.host_read import check
from ..._dispatch.public.protocol import as_kind
from ..._dispatch.public.registry import export, guard, public
from ..._dispatch.writer import Writer, writer
from ..create.constants import chosen_kind, filled, in_pinned_memory, made, requested_shape, whole_shape
from ..create.like import filled_like
from ..shape.view import as_shape

Numbers = tuple[Any, ...]
"""The parameters of a distribution."""


def _drawing(name: str, sample: Callable[..., None]) -> Writer:
    """The op `name` that fills a tensor by `sample(array, generator, *numbers)`."""

    def draw(self: Array, generator: Any, *numbers: Any) -> None:
        sample(self, generator, *numbers)

    return writer(name, writes=("self",), counted=False, draws=True)(draw)


def _permute(into: Array, source: Generator, n: int) -> None:
    into[...] = beside(permutation.randperm(n, into.dtype, source), into)


def _between(into: Array, source: Generator, low: int, high: int | None) -> None:
    sampling.fill_random_between(into, source, low, high)


_uniform = _drawing("uniform_", sampling.fill_uniform)
_normal = _drawing("normal_", sampling.fill_normal)
_log_normal = _drawing("log_normal_", sampling.fill_log_normal)
_exponential = _drawing("exponential_", sampling.fill_exponential)
_cauchy = _drawing("cauchy_", sampling.fill_cauchy)
_geometric = _drawing("geometric_", sampling.fill_geometric)
_random = _drawing("random_", sampling.fill_random)
_random_between = _drawing("random_between_", _between)
_permutation = _drawing("randperm_", _permute)
_bernoulli_number = _drawing("bernoulli_number_", sampling.fill_bernoulli)


@writer("bernoulli_tensor_", writes=("self",), counted=False, draws=True)
def _bernoulli_tensor(self: Array, generator: Any, p: Array) -> None:
    sampling.fill_bernoulli(self, generator, p)


def _zeros(grad: Tensor) -> Tensor:
    return grad.new_zeros(grad.shape)


def _source(generator: Generator | None) -> Generator:
    return default_generator if generator is None else generator


# Factories ------------------------------------------------------------------------------------------------------------


def _filled(
    shape: tuple[int, ...], kind: Kind, draw: Writer, numbers: Numbers, generator: Generator | None, requires_grad: bool
) -> Tensor:
    if min(shape, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    tensor = filled(shape, kind, None, requires_grad)
    draw(tensor, _source(generator), *numbers)
    return tensor


def _fill_out(
    out: Tensor, shape: tuple[int, ...], kind: Kind, draw: Writer, numbers: Numbers, generator: Generator | None
) -> Tensor:
    """Fill `out` itself: the numbers depend on its strides. Only factories change its shape without a warning."""
    if out._kind.plain is not kind:
        what, asked, given = ("dtype", LEGACY_NAMES[kind.dtype], LEGACY_NAMES[out.dtype])
        if kind.device is not out.device:
            what, asked, given = "device type", str(kind.device), str(out.device)
        raise RuntimeError(f"{what} {asked} does not match {what} of out parameter ({given})")
    return _fill(out.resize_(shape), "", draw, numbers, generator)


def _check_out(out: Any) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")


def _made(
    shape: tuple[int, ...], dtype: Any, device: Any, draw: Writer, numbers: Numbers, generator: Generator | None,
    requires_grad: bool, out: Tensor | None, fallback: DType | None = None,
) -> Tensor:  # fmt: skip
    """What a factory returns: without `dtype=` and `device=`, those of `out` count."""
    if out is None:
        kind = chosen_kind(dtype, device, fallback)
        if kind.is_cpu and kind in THREAD.modes.direct and 0 not in shape:
            try:
                array = np.empty(shape, kind.dtype.numpy)
            except (ValueError, MemoryError):
                pass  # the long way says what is wrong
            else:
                source = default_generator if generator is None else generator
                lowering = kind.tries.get(draw) or kind.backend.first_try(draw)
                if lowering(array, source, *numbers) is None and lowering is not draw.kernel:
                    draw.kernel(array, source, *numbers)
                return made(array, kind, requires_grad)
        return _filled(shape, kind, draw, numbers, generator, requires_grad)
    _check_out(out)
    kind = chosen_kind(dtype or out.dtype, device or out._kind.device)
    result = _fill_out(out, shape, kind, draw, numbers, generator)
    return result.requires_grad_() if requires_grad else result


def rand(
    *sizes: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers in [0, 1), all equally likely."""
    shape = requested_shape(sizes, size, "rand")
    if pin_memory and out is None:
        return in_pinned_memory(rand(shape, generator=generator, dtype=dtype, device=device), requires_grad)
    if out is None:
        kind = chosen_kind(dtype, device)
        if kind.is_cpu and kind in THREAD.modes.direct and math.prod(shape) < 2**60:  # else an error says what is wrong
            source = default_generator if generator is None else generator
            return made(sampling.uniform(shape, kind.dtype.numpy, source), kind, requires_grad)
    return _made(shape, dtype, device, _uniform, (), generator, requires_grad, out)


def randn(
    *sizes: Any, size: Any = None, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers of the standard normal distribution."""
    shape = requested_shape(sizes, size, "randn")
    if pin_memory and out is None:
        return in_pinned_memory(randn(shape, generator=generator, dtype=dtype, device=device), requires_grad)
    return _made(shape, dtype, device, _normal, (), generator, requires_grad, out)


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
    return _made(
        whole_shape(size, "randint", len(bounds_and_size)), dtype, device, _random_between, (first, last), generator,
        requires_grad, out, int64,
    )  # fmt: skip


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
    return _whole(name, "low", 0 if low is None else low), _whole(name, "high", high)


def _whole(caller: str, name: str, value: Any) -> int:
    if type(value) is int and -(2**63) <= value < 2**63:  # the usual case, without a call
        return value
    if isinstance(value, Tensor) and caller == "randint_like":  # alone in taking fractions, if in tensors
        if value.dim() or value.device.type != "cpu":
            raise RuntimeError(f"{name} must be a scalar tensor and on CPU")
        value = int(value.item())
    elif isinstance(value, Tensor) and not value.dim():
        value = value.item()
    number = whole(value, caller, name, 1 if name == "low" else 2)
    if not fits_int64(number):
        raise ValueError(f"Overflow when unpacking long long: '{name}' of {caller}() is {number}")
    return number


def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The numbers from 0 to n - 1 in random order."""
    n = whole(n, "randperm", "n", 1)

    return _made((n,), dtype, device, _permutation, (n,), generator, requires_grad, out, int64)


for _factory in (rand, randn, randint, randperm):
    export(guard(_factory), _factory.__name__)


def _like(
    input: Tensor, dtype: Any, device: Any, draw: Writer, numbers: Numbers, generator: Generator | None,
    requires_grad: bool, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    dtype = input.dtype if dtype is None else dtype
    kind = chosen_kind(dtype, input._kind.device if device is None else device)
    tensor = filled_like(input, kind, memory_format, None, requires_grad)
    draw(tensor, _source(generator), *numbers)
    return tensor


@public(method=False)
def rand_like(
    input: Tensor, *, generator: Generator | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`rand` with the shape, dtype and device of `input`."""
    return _like(input, dtype, device, _uniform, (), generator, requires_grad, memory_format)


@public(method=False)
def randn_like(
    input: Tensor, *, generator: Generator | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`randn` with the shape, dtype and device of `input`."""
    return _like(input, dtype, device, _normal, (), generator, requires_grad, memory_format)


@public(method=False)
def randint_like(
    input: Tensor, *bounds: Any, low: int | None = None, high: int | None = None, generator: Generator | None = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """`randint(low, high)` with the shape, dtype and device of `input`."""
    first, last = _bounds("randint_like", list(bounds), low, high)
    return _like(
        input, dtype, device, _random_between, (first, last), generator, requires_grad, memory_format,
    )  # fmt: skip


# Sampling with parameters that are tensors ----------------------------------------------------------------------------


@primitive("BernoulliBackward0", draws=True, self=_zeros)
def _bernoulli(self: Array, generator: Any) -> Array:
    result = np.zeros(self.shape, self.dtype, like=self)
    if generator is not None:
        sampling.fill_bernoulli(result, generator, self)
    return result


def _no_derivative(grad: Tensor) -> Tensor:
    raise RuntimeError("derivative for aten::bernoulli is not implemented: pass probabilities, or detach the input")


@primitive("NotImplemented", draws=True, self=_no_derivative)
def _bernoulli_everywhere(self: Array, p: float, generator: Any) -> Array:
    result = np.zeros(self.shape, self.dtype, like=self)
    if generator is not None:
        sampling.fill_bernoulli(result, generator, p)
    return result


@public()
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Ones with the probability that stands in each place of `input` (or `p` everywhere), else zeros."""
    if p is not None:
        if out is not None:
            raise TypeError("bernoulli() received an invalid combination of arguments: `out` goes without `p`")
        return _bernoulli_everywhere(input, p, None if input._kind.dataless else _source(generator))
    if out is not None:
        _check_out(out)
        _refuse_graph(input, out)
        return _fill(out.resize_(input.shape), "", _bernoulli_tensor, (input,), generator)
    return _bernoulli(input, None if input._kind.dataless else _source(generator))


def _refuse_graph(*tensors: Any) -> None:
    if THREAD.modes.grad and any(isinstance(each, Tensor) and each.requires_grad for each in tensors):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad. Leave out= away, or compute under torch.no_grad()."
        )


@primitive(None, draws=True)
def _multinomial(self: Array, num_samples: int, replacement: bool, generator: Any) -> Array:
    return sampling.multinomial(self, num_samples, replacement, generator)


@public()
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Indices drawn with probabilities proportional to each row of `input`."""
    if out is not None:
        _check_out(out)
        if out.dtype is not int64:
            raise RuntimeError(f"multinomial expects Long tensor out, got: {LEGACY_NAMES[out.dtype]}")
    if input._kind.dataless:
        kind = chosen_kind(int64, input._kind.device)
        result = made(empty_meta((*input._array.shape[:-1], num_samples), kind.dtype.numpy), kind, False)
    else:
        result = _multinomial(input, num_samples, replacement, _source(generator))
    return result if out is None else store(result, out.resize_(result.shape))


def _standard_normals(shape: tuple[int, ...], like: Array, generator: Generator | None, std: float = 1.0) -> Array:
    """Numbers around zero in the type of `like`; on the meta device, without a generator, just zeros."""
    result = np.zeros(shape, like.dtype, like=like)
    if generator is not None:
        sampling.fill_normal(result, generator, 0.0, std)
    return result


@primitive("NormalBackward1", draws=True, mean=_zeros)
def _normal_around(mean: Array, std: float, generator: Any) -> Array:
    return _standard_normals(mean.shape, mean, generator, std) + mean


@primitive("NormalBackward2", draws=True, std=_zeros)
def _normal_of_widths(mean: float, std: Array, generator: Any) -> Array:
    return _standard_normals(std.shape, std, generator) * std + std.dtype.type(mean)


@primitive(
    "NormalBackward3",
    draws=True,
    mean=lambda grad, mean_sym_sizes: grad.new_zeros(mean_sym_sizes),
    std=lambda grad, std_sym_sizes: grad.new_zeros(std_sym_sizes),
)
def _normal_each(mean: Array, std: Array, generator: Any) -> Array:
    result = _standard_normals(joint_shape(mean.shape, std.shape), mean, generator)
    result *= std.astype(mean.dtype, copy=False)
    result += mean
    return result


def normal(
    mean: Tensor | float, std: Tensor | float = 1.0, size: Any = None, *, generator: Generator | None = None,
    out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normally distributed numbers: `mean` and `std` are tensors, or numbers together with a `size`."""
    if size is not None:
        mean, std = _as_number(mean), _as_number(std)
    tensors = [each for each in (mean, std) if isinstance(each, Tensor)]
    if (size is None) == (not tensors) or isinstance(size, int):
        raise TypeError(
            "normal() received an invalid combination of arguments: a tuple `size` goes with two numbers only"
        )
    _check_deviation(std)
    if layout is not None:
        as_kind("normal", "layout", layout)
    if not (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        place = CPU if device is None and out is None else device  # the default device does not count
        return _made(as_shape((size,)), dtype, place, _normal, (mean, std), generator, requires_grad, out)
    if out is not None:
        return _normal_into(out, mean, std, generator)
    source = None if tensors[0]._kind.dataless else _source(generator)
    if len(tensors) == 2:
        _check_broadcast(mean, std)
        return _normal_each(mean, std, source)
    if isinstance(mean, Tensor):
        assert not isinstance(std, Tensor)
        return _normal_around(mean, std, source)
    return _normal_of_widths(mean, std, source)


def _as_number(value: Tensor | float) -> Tensor | float:
    """The number in a tensor without dimensions, unless a gradient is asked of it."""
    if isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad:
        number: float = value.item()
        return number
    return value


def _check_broadcast(left: Any, right: Any) -> None:
    try:
        joint_shape(left.shape, right.shape)
    except ValueError:
        raise shape_error("normal", left, right) from None


def _check_deviation(std: Tensor | float) -> None:
    if not isinstance(std, Tensor):
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    elif std.dtype.is_complex:
        raise RuntimeError(f"normal expects standard deviation to be non-complex, but its dtype is {std.dtype}")
    else:
        _check_deviations(std)


@check("check_deviations")
def _check_deviations(std: Array) -> None:
    if std.size and not read((std >= 0).all()):
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but the smallest is {std.min()}")


def _normal_into(out: Tensor, mean: Any, std: Any, generator: Generator | None) -> Tensor:
    """Standard numbers in `out`, then stretched and moved there; `std` decides about its shape, `mean` does not."""
    _check_out(out)
    _refuse_graph(out, mean, std)
    if isinstance(std, Tensor):
        resize_output(out, joint_shape(std.shape, getattr(mean, "shape", ())))
        out.normal_(generator=generator)
        return out.mul_(std).add_(mean)
    _check_broadcast(mean, out)
    out.normal_(0.0, std, generator=generator)
    return out.add_(mean)


export(guard(normal, overridable=True), "normal")


# In-place fills -------------------------------------------------------------------------------------------------------


def _history(node: str) -> Primitive[..., Tensor]:
    """A primitive that changes nothing and records `node`, whose gradient is zero."""

    def overwritten(self: Array) -> Array:
        return self

    overwritten.__name__ = f"overwritten_{node}"
    return primitive(node, axes=ELEMENTS, self=_zeros)(overwritten)


_HISTORIES = {
    node: _history(node)
    for node in (
        "UniformBackward0", "NormalBackward0", "LogNormalBackward0", "ExponentialBackward0", "CauchyBackward0",
        "GeometricBackward0", "BernoulliBackward1", "BernoulliBackward2", "RandomBackward0", "RandomBackward1",
        "RandomBackward2",
    )
}  # fmt: skip


def _fill(target: Tensor, node: str, draw: Writer, numbers: Numbers, generator: Generator | None) -> Tensor:
    """Write random numbers into the memory of `target` itself: their order depends on its strides."""
    if target._requires_grad or target._view is not None or target._counter is None or target._array.base is not None:
        check_writable(target)
        check_no_overlap(target)
    source, modes = default_generator if generator is None else generator, THREAD.modes
    draw(target, source, *numbers)
    if modes.grad and (target._requires_grad or target._view is not None) and target.requires_grad:
        result: Any = _HISTORIES[node](before_change(target, (), {}))
        end_change(target, result._grad_fn, result._output_nr)
    elif target._counter is not None:
        note_change(target._counter, 3)
    else:
        end_change(target)
    if modes.forward_level >= 0:
        SLOTS.adopt_tangent(target, None)
    return target


def _ends(name: str, bounds: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """`from` and `to` of a range, by position or by name: the first is a keyword that no parameter can be called."""
    if unknown := named.keys() - {"from", "to"}:
        raise TypeError(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
    free = [each for each in ("from", "to") if each not in named]
    if len(bounds) > len(free):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: it takes from and to, got {len(bounds)} numbers "
            f"and {sorted(named)}"
        )
    return dict(zip(free, bounds, strict=False)) | named


@public(function=False)
def uniform_(input: Tensor, *bounds: float, generator: Generator | None = None, **named: float) -> Tensor:
    """Fill with numbers in [from, to): `uniform_(from=0, to=1)`."""
    ends = _ends("uniform_", bounds, named)
    low, high = ends.get("from", 0.0), ends.get("to", 1.0)
    for word, value in (("from", low), ("to", high)):
        if type(value) is not float and type(value) is not int:
            as_kind("uniform_", word, value)
    return _fill(input, "UniformBackward0", _uniform, (low, high), generator)


@public(function=False)
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers."""
    return _fill(input, "NormalBackward0", _normal, (mean, std), generator)


@public(function=False)
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithm is normally distributed."""
    return _fill(input, "LogNormalBackward0", _log_normal, (mean, std), generator)


@public(function=False)
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of rate `lambd`."""
    return _fill(input, "ExponentialBackward0", _exponential, (lambd,), generator)


@public(function=False)
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    return _fill(input, "CauchyBackward0", _cauchy, (median, sigma), generator)


@public(function=False)
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials up to a first success of probability `p`."""
    return _fill(input, "GeometricBackward0", _geometric, (p,), generator)


@public(function=False)
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability `p`, a number or a tensor of them, else zeros."""
    if isinstance(p, Tensor):
        return _fill(input, "BernoulliBackward1", _bernoulli_tensor, (p,), generator)
    return _fill(input, "BernoulliBackward2", _bernoulli_number, (p,), generator)


@public(function=False)
def random_(input: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with whole numbers: `random_()` over the type's range, `random_(to)`, `random_(from, to)`."""
    ends = _ends("random_", bounds, named)
    if not ends:
        return _fill(input, "RandomBackward2", _random, (), generator)
    if len(ends) == 1:
        ends = {"from": 0, "to": next(iter(ends.values()))}
        node = "RandomBackward1"
    else:
        node = "RandomBackward0"
    low = _whole("random_", "from", ends["from"])
    high = None if ends["to"] is None else _whole("random_", "to", ends["to"])
    return _fill(input, node, _random_between, (low, high), generator)


# The default generator ------------------------------------------------------------------------------------------------


def manual_seed(seed: Any) -> Generator:
    """Start the random numbers of all devices again from `seed`; returns the default generator."""
    seed_all_devices(int(seed))
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


def thread_safe_generator() -> Generator | None:
    """The generator to pass as `generator=` from any thread: that of a loader's thread worker, elsewhere None."""
    worker = sys.modules.get("flambeau.utils.data._utils.worker")  # not loaded means that there is no loader
    info = None if worker is None else worker.get_worker_info()
    return None if info is None or info.rng is None else info.rng.torch_generator


for _function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state, thread_safe_generator):
    export(_function, _function.__name__)
