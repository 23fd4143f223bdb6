"""Discrete Fourier transforms: `torch.fft`.

Three kernels do the work: complex to complex, real to complex, complex to real. A transform of PyTorch's is one of them
on an input that was cut or padded with zeros to the sizes asked for; the Hermitian ones are conjugates of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.backend import LARGE
from ..._core.dtype import FLOAT, LEGACY_NAMES, complex64, complex128, float32, float64
from ..._core.geometry.layout import contiguous_array
from ..._core.process.processor import ON_X86_64
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.tensor import Tensor, wrap
from ..._dispatch.arguments.autocast_rules import FULL, Autocast, on
from ..._dispatch.arguments.precision import as_floating
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.axes import Along
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.protocol import write_out
from ..._dispatch.public.registry import export, guard, public
from ..create.constants import check_shape, chosen_kind, computed
from ..nn.image.pad import constant_pad_nd
from ..shape.complex_view import real
from ..shape.conjugate import conj
from ..shape.parts import narrow
from ..shape.rearrange import roll
from ..shape.view import as_shape, wrap_dim

Dim = tuple[int, ...]

NOTHING, ROOT, WHOLE = range(3)
"""By what a transform divides: by nothing, by the root of the number of points, or by their number."""

_SCALES: dict[str | None, int] = {None: NOTHING, "backward": NOTHING, "ortho": ROOT, "forward": WHOLE}
_NUMPY_NORMS = ("backward", "ortho", "forward")
"""What NumPy calls the scales of a forward transform."""


# ----- kernels ------------------------------------------------------------------------------------------------------


def _numpy_norm(scale: int, forward: bool) -> Any:
    return _NUMPY_NORMS[scale if forward else 2 - scale]


def _transformed(transform: Callable[[Any, Dim], Any], array: Any, dims: Dim) -> Any:
    """`transform` of `array` along `dims`, in the layout that PyTorch's result has.

    That is row-major; but on x86-64, where MKL does the work, the transformed dimensions come last in memory, and the
    others in the order that they have in the input.
    """
    if not ON_X86_64 or (array.flags.c_contiguous and dims == (array.ndim - 1,)):
        return contiguous_array(transform(array, dims))
    others = sorted((each for each in range(array.ndim) if each not in dims), key=lambda dim: -array.strides[dim])
    order = (*others, *dims)
    last = tuple(range(len(others), array.ndim))
    return contiguous_array(transform(array.transpose(order), last)).transpose(np.argsort(order).tolist())


def _in_order(array: Any, dims: Dim) -> Dim:
    """Dimensions that may be transformed in any order, in that of PyTorch: with MKL by their strides, else as given."""
    return tuple(sorted(dims, key=lambda dim: -array.strides[dim])) if ON_X86_64 else dims


def _c2c_gradient(grad: Tensor, dim: Dim, normalization: int, forward: bool) -> Tensor:
    return _fft_c2c(grad, dim, normalization, not forward)


@primitive("FftC2CBackward0", axes=Along("dim"), self=_c2c_gradient)
def _fft_c2c(self: Array, dim: Dim, normalization: int, forward: bool) -> Array:
    if not dim:
        return self.copy(order="K")
    norm = _numpy_norm(normalization, forward)
    if len(dim) == 1:
        one: Any = np.fft.fft if forward else np.fft.ifft
        return _transformed(lambda array, axes: one(array, None, axes[0], norm), self, dim)
    transform = np.fft.fftn if forward else np.fft.ifftn
    dim = _in_order(self, dim)
    return _transformed(lambda array, axes: transform(array, axes=axes, norm=norm), self, dim)


def _middle_weighed(spectrum: Tensor, dim: int, points: int, weight: float) -> Tensor:
    """`spectrum`, the first half of a Hermitian one, with the frequencies that stand for two of them times `weight`."""
    weights = np.full(points // 2 + 1, weight, spectrum._array.real.dtype)
    weights[0] = 1
    if points % 2 == 0:
        weights[-1] = 1
    shape = [-1 if each == dim else 1 for each in range(spectrum._array.ndim)]
    return spectrum * wrap(weights.reshape(shape), spectrum._kind.device)


def _r2c_gradient(grad: Tensor, self_sym_sizes: Dim, dim: Dim, normalization: int, onesided: bool) -> Tensor:
    if not onesided:
        return real(_fft_c2c(grad, dim, normalization, False))
    points = self_sym_sizes[dim[-1]]
    return _fft_c2r(_middle_weighed(grad, dim[-1], points, 0.5), dim, normalization, points)


def _both_sides(array: Any, points: None, axis: int, norm: Any) -> Any:
    """The whole spectrum of real numbers along an axis: the second half mirrors the first."""
    if array.size < LARGE and REPRODUCIBILITY.product is None:
        return np.fft.fft(array, points, axis, norm)
    half = np.fft.rfft(array, points, axis, norm)
    size, known = array.shape[axis], half.shape[axis]
    result = np.empty(array.shape, half.dtype, like=half)
    lead = (slice(None),) * axis
    result[(*lead, slice(known))] = half
    if size > known:
        np.conjugate(half[(*lead, slice(size - known, 0, -1))], out=result[(*lead, slice(known, None))])
    return result


@primitive("FftR2CBackward0", axes=Along("dim"), self=_r2c_gradient)
def _fft_r2c(self: Array, dim: Dim, normalization: int, onesided: bool) -> Array:
    norm = _numpy_norm(normalization, True)
    if len(dim) == 1:
        one: Any = np.fft.rfft if onesided else _both_sides
        return _transformed(lambda array, axes: one(array, None, axes[0], norm), self, dim)
    transform = np.fft.rfftn if onesided else np.fft.fftn
    dim = (*_in_order(self, dim[:-1]), dim[-1])
    return _transformed(lambda array, axes: transform(array, axes=axes, norm=norm), self, dim)


def _c2r_gradient(grad: Tensor, dim: Dim, normalization: int, last_dim_size: int) -> Tensor:
    return _middle_weighed(_fft_r2c(grad, dim, normalization, True), dim[-1], last_dim_size, 2.0)


@primitive("FftC2RBackward0", axes=Along("dim"), self=_c2r_gradient)
def _fft_c2r(self: Array, dim: Dim, normalization: int, last_dim_size: int) -> Array:
    norm = _numpy_norm(normalization, False)
    if len(dim) > 1:
        outer = _in_order(self, dim[:-1])
        self = _transformed(lambda array, axes: np.fft.ifftn(array, axes=axes, norm=norm), self, outer)
    return _transformed(lambda array, axes: np.fft.irfft(array, last_dim_size, axes[0], norm), self, dim[-1:])


# ----- arguments ----------------------------------------------------------------------------------------------------


def _scale(norm: Any, forward: bool) -> int:
    if norm is None:
        return NOTHING if forward else WHOLE
    if isinstance(norm, bytes):
        norm = norm.decode(errors="replace")
    if not isinstance(norm, str):
        raise TypeError(f"argument 'norm' must be str, not {type(norm).__name__}")
    if norm not in _SCALES:
        raise RuntimeError(f'Invalid normalization mode: "{norm}": expected "backward", "ortho" or "forward"')
    return _SCALES[norm] if forward else 2 - _SCALES[norm]


_TRANSFORMABLE = frozenset((float32, float64, complex64, complex128))


def transformable(input: Tensor) -> Tensor:
    """`input` in a dtype that there are transforms of."""
    if input._kind.dtype in _TRANSFORMABLE:
        return input
    input = as_floating(input)
    dtype = input._kind.dtype
    if dtype not in _TRANSFORMABLE:
        raise RuntimeError(f"Unsupported dtype {LEGACY_NAMES[dtype]}: convert the input, as in .to(torch.float32)")
    return input


def _as_complex(input: Tensor) -> Tensor:
    input = transformable(input)
    return input.to(input._kind.dtype.to_complex())


def _dim_of(dim: Any, input: Tensor) -> int:
    if input._array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, input._array.ndim)


def _check_points(count: int) -> None:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")


def _fitted(input: Tensor, dims: Dim, sizes: Dim) -> Tensor:
    """`input` cut, or padded with zeros, to `sizes` along `dims`."""
    shape = input._array.shape
    if sizes == tuple([shape[dim] for dim in dims]):
        return input
    missing = [0] * input._array.ndim
    for dim, size in zip(dims, sizes, strict=True):
        present = input._array.shape[dim]
        if present > size:
            input = narrow(input, dim, 0, size)
        missing[dim] = max(size - present, 0)
    if not any(missing):
        return input
    return constant_pad_nd(input, [each for count in reversed(missing) for each in (0, count)])


def _one_dim(input: Tensor, n: Any, dim: Any, half: bool = False) -> tuple[int, int]:
    """The dimension to transform and how many points it gets; `half`: the input is half of a Hermitian spectrum."""
    shape = input._array.shape
    if n is None and dim == -1 and shape and shape[-1] > half:  # the usual case
        return len(shape) - 1, 2 * (shape[-1] - 1) if half else shape[-1]
    dim = _dim_of(dim, input)
    if n is None:
        present = input._array.shape[dim]
        n = 2 * (present - 1) if half else present
    points = integer(n)
    if points is None:
        raise TypeError(f"argument 'n' must be int, not {type(n).__name__}")
    _check_points(points)
    return dim, points


def _many_dims(name: str, input: Tensor, s: Any, dim: Any, half: bool = False) -> tuple[Dim, Dim]:
    """The dimensions to transform and how many points each gets; `half` is about the last of them."""
    shape = input._array.shape
    sizes = None if s is None else _ints(s, "s")
    if dim is not None:
        dims = tuple([_dim_of(each, input) for each in _ints(dim, "dim")])
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"FFT dims must be unique, got dim={list(dims)}")
        if sizes is not None and len(sizes) != len(dims):
            raise RuntimeError(
                f"When given, dim and shape arguments must have the same length: dim={list(dims)}, s={list(sizes)}"
            )
    elif sizes is not None:
        if len(sizes) > len(shape):
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {len(shape)} dimensions.")
        dims = tuple(range(len(shape) - len(sizes), len(shape)))
    else:
        dims = tuple(range(len(shape)))
    points = [shape[each] for each in dims]
    if half and points and (sizes is None or sizes[-1] == -1):
        points[-1] = 2 * (points[-1] - 1)
    if sizes is not None:
        points = [present if wanted == -1 else wanted for present, wanted in zip(points, sizes, strict=True)]
    for each in points:
        _check_points(each)
    if name != "fftn" and not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return dims, tuple(points)


def _ints(value: Any, word: str) -> Dim:
    try:
        return as_shape((value,))
    except (TypeError, AttributeError):
        raise TypeError(f"argument '{word}' must be tuple of ints, not {type(value).__name__}") from None


def _refuse_complex(input: Tensor, message: str) -> None:
    if input._kind.dtype.is_complex:
        raise RuntimeError(f"{message}, but got {LEGACY_NAMES[input._kind.dtype]}: take its .real part")


# ----- transforms of any number of dimensions -----------------------------------------------------------------------


def _c2c(input: Tensor, dims: Dim, points: Dim, norm: Any, forward: bool) -> Tensor:
    return _fft_c2c(_fitted(_as_complex(input), dims, points), dims, _scale(norm, forward), forward)


def _r2c(input: Tensor, dims: Dim, points: Dim, norm: Any, forward: bool, onesided: bool) -> Tensor:
    """The transform of real input. Backward transforms are the conjugates of forward ones."""
    result: Tensor = _fft_r2c(_fitted(input, dims, points), dims, _scale(norm, forward), onesided)
    return result if forward else conj(result)


def _half_fitted(input: Tensor, dims: Dim, points: Dim) -> Tensor:
    return _fitted(_as_complex(input), dims, (*points[:-1], points[-1] // 2 + 1))


def _fft(input: Tensor, n: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    input = transformable(input)
    axis, points = _one_dim(input, n, dim)
    if input._kind.dtype.is_complex:
        return _c2c(input, (axis,), (points,), norm, forward)
    return _r2c(input, (axis,), (points,), norm, forward, onesided=False)


def _rfft(name: str, input: Tensor, n: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    _refuse_complex(input, f"{name} expects a real input tensor")
    input = transformable(input)
    axis, points = _one_dim(input, n, dim)
    return _r2c(input, (axis,), (points,), norm, forward, onesided=True)


def _irfft(input: Tensor, n: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    axis, points = _one_dim(transformable(input), n, dim, half=True)
    spectrum = _half_fitted(input, (axis,), (points,))
    return _fft_c2r(conj(spectrum) if forward else spectrum, (axis,), _scale(norm, forward), points)


def _fftn(input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    return _c2c(input, *_many_dims("fftn", transformable(input), s, dim), norm, True)


def _ifftn(input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    return _c2c(input, *_many_dims("fftn", transformable(input), s, dim), norm, False)


def _rfftn(input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    _refuse_complex(input, "rfftn expects a real-valued input tensor")
    input = transformable(input)
    return _r2c(input, *_many_dims("rfftn", input, s, dim), norm, True, onesided=True)


def _irfftn(input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    dims, points = _many_dims("irfftn", transformable(input), s, dim, half=True)
    return _fft_c2r(_half_fitted(input, dims, points), dims, _scale(norm, False), points[-1])


def _hfftn(input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    dims, points = _many_dims("hfftn", transformable(input), s, dim, half=True)
    spectrum, scale = _half_fitted(input, dims, points), _scale(norm, True)
    if len(dims) > 1:
        spectrum = _fft_c2c(spectrum, dims[:-1], scale, True)
    return _fft_c2r(conj(spectrum), dims[-1:], scale, points[-1])


def _ihfftn(input: Tensor, s: Any, dim: Any, norm: Any) -> Tensor:
    dims, points = _many_dims("ihfftn", transformable(input), s, dim)
    if input._kind.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {LEGACY_NAMES[input._kind.dtype]}")
    scale = _scale(norm, False)
    half = _fft_r2c(_fitted(transformable(input), dims, points), dims[-1:], scale, True)
    if len(dims) == 1:
        return conj(half)
    return _fft_c2c(half.conj_physical(), dims[:-1], scale, False)


# ----- the public functions -----------------------------------------------------------------------------------------


def _stored(result: Tensor, out: Any, name: str, exactly: bool = False) -> Tensor:
    """`result`, in `out` if that was given. `exactly`: it must have the result's dtype."""
    if out is None:
        return result
    if isinstance(out, Tensor):
        given, wanted = out._kind.dtype, result._kind.dtype
        if given.category != wanted.category:
            word = "complex" if wanted.is_complex else "floating point"
            raise RuntimeError(f"{name} expects a {word} output tensor, but got {LEGACY_NAMES[given]}")
        if exactly and given is not wanted:
            raise RuntimeError(f"Found dtype {LEGACY_NAMES[given]} but expected {LEGACY_NAMES[wanted]}")
        if not exactly:  # PyTorch copies those, while it conjugates the others into `out`
            result = result.contiguous()
    return write_out(result, out)


_ON_CPU = on(cpu=FULL)
"""What autocast does with transforms; those of several dimensions of Hermitian signals have no rule in PyTorch."""


def _publish_one(name: str, transform: Callable[..., Tensor], forward: bool, doc: str) -> None:
    """Publish a transform of one dimension."""

    def function(
        input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        by_conjugation = not forward and not input._kind.dtype.is_complex and name != "irfft"
        return _stored(transform(input, n, dim, norm, forward), out, name, exactly=by_conjugation)

    _publish(function, name, doc)


def _publish_many(name: str, transform: Callable[..., Tensor], doc: str, autocast: Autocast | None = _ON_CPU) -> None:
    """Publish a transform of several dimensions, and its form for two."""
    checked = "fftn" if name == "ifftn" else name

    def function(
        input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        return _stored(transform(input, s, dim, norm), out, checked)

    def of_two(
        input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        if dim is None:
            raise TypeError(f"fft_{name[:-1]}2(): argument 'dim' (position 3) must be tuple of ints, not NoneType")
        return _stored(transform(input, s, dim, norm), out, checked)

    _publish(function, name, doc, autocast)
    _publish(of_two, f"{name[:-1]}2", f"{doc} By default the last two dimensions are transformed.", autocast)


def _publish(function: Callable[..., Tensor], name: str, doc: str, autocast: Autocast | None = _ON_CPU) -> None:
    function.__name__ = function.__qualname__ = f"fft_{name}"
    function.__doc__ = doc
    public(f"fft.{name}", function=False, method=False, autocast=autocast)(function)


_publish_one("fft", _fft, True, "The discrete Fourier transform along one dimension.")
_publish_one("ifft", _fft, False, "The inverse discrete Fourier transform along one dimension.")
_publish_one(
    "rfft",
    lambda *args: _rfft("rfft", *args),
    True,
    "The Fourier transform of real input; of its Hermitian result the first half.",
)
_publish_one("irfft", _irfft, False, "The inverse of `rfft`: real output from half of a Hermitian spectrum.")
_publish_one("hfft", _irfft, True, "The Fourier transform of a Hermitian signal, of which `input` is half.")
_publish_one("ihfft", lambda *args: _rfft("ihfft", *args), False, "The inverse of `hfft`.")
_publish_many("fftn", _fftn, "The Fourier transform along several dimensions.")
_publish_many("ifftn", _ifftn, "The inverse Fourier transform along several dimensions.")
_publish_many("rfftn", _rfftn, "The Fourier transform of real input along several dimensions; of the last one half.")
_publish_many("irfftn", _irfftn, "The inverse of `rfftn`.")
_publish_many("hfftn", _hfftn, "The Fourier transform of a Hermitian signal along several dimensions.", None)
_publish_many("ihfftn", _ihfftn, "The inverse of `hfftn`.", None)


# ----- frequencies and shifts ---------------------------------------------------------------------------------------


def _frequencies(name: str, steps: Callable[[int], Any], n: Any, d: Any, options: Any) -> Tensor:
    out, dtype, device, requires_grad = options
    count = integer(n)
    if count is None:
        raise TypeError(f"fft_{name}(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if isinstance(d, complex):
        raise TypeError(f"fft_{name}(): argument 'd' (position 2) must be float, not complex")
    kind = chosen_kind(out._kind.dtype if dtype is None and out is not None else dtype, device, None, name)
    if kind.dtype.category < FLOAT:
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got {kind.dtype}")
    if kind.dtype.is_complex:
        raise NotImplementedError(f'"arange_cpu" not implemented for {LEGACY_NAMES[kind.dtype]!r}')
    if name == "fftfreq":
        check_shape((count,), name)
    array_type = kind.dtype.numpy

    def numbers() -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = (np.float64(1.0) / (count * d)).astype(np.float64 if array_type.itemsize == 8 else np.float32)
            return (steps(count).astype(array_type) * factor).astype(array_type)

    return computed((count if name == "fftfreq" else int(count / 2) + 1,), kind, numbers, requires_grad, out)


def _full_steps(n: int) -> Any:
    return np.concatenate((np.arange((n + 1) // 2), np.arange(-(n // 2), 0)))


def fftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """The frequencies of the `n` results of `fft`, in cycles per unit, for samples `d` apart."""
    return _frequencies("fftfreq", _full_steps, n, d, (out, dtype, device, requires_grad))


def rfftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool | None = None,
) -> Tensor:  # fmt: skip
    """The frequencies of the results of `rfft` of `n` samples that are `d` apart."""
    return _frequencies("rfftfreq", lambda n: np.arange(int(n / 2) + 1), n, d, (out, dtype, device, requires_grad))


export(guard(fftfreq, "fft.fftfreq"), "fft.fftfreq")
export(guard(rfftfreq, "fft.rfftfreq"), "fft.rfftfreq")


def _shifted(input: Tensor, dim: Any, back: bool) -> Tensor:
    dims = tuple(range(input._array.ndim)) if dim is None else _ints(dim, "dim")
    sizes = [input._array.shape[wrap_dim(each, input._array.ndim)] for each in dims]
    return roll(input, tuple([(size + back) // 2 for size in sizes]), dims)


@public("fft.fftshift", function=False, method=False)
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The frequency zero moved to the middle of each dimension."""
    return _shifted(input, dim, back=False)


@public("fft.ifftshift", function=False, method=False)
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted(input, dim, back=True)
