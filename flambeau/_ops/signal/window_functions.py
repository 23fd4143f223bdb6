"""Window functions of signal processing: `torch.hann_window` and its kin, and `torch.signal.windows`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from ..._core.device import strided
from ..._core.dtype import DEFAULTS, FLOAT, float32, float64
from ..._core.kind import Kind
from ..._core.modes import THREAD
from ..._core.tensor import Tensor
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.public.registry import export, guard
from ..create.constants import chosen_kind, filled, tensor
from ..create.range import arange, linspace
from ..pointwise.special import i0

# ----- torch.*_window: every step is rounded to the dtype ------------------------------------------------------------


def _window(
    name: str, shape_of: Callable[[Tensor, int], Tensor], window_length: Any, periodic: Any, options: tuple[Any, ...]
) -> Tensor:
    """A window of PyTorch's older kind: `shape_of` computes it from the numbers 0, 1, 2, ... and its last number.

    A periodic window is the symmetric one of one point more, without its last point.
    """
    dtype, layout, device, requires_grad = options
    length = integer(window_length)
    if length is None:
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not {type(window_length).__name__}"
        )
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: layout={layout}")
    kind = chosen_kind(dtype, device, None, name)
    if kind.dtype.category < FLOAT:
        raise RuntimeError(f"{name} expects floating point dtypes, got: dtype={kind.dtype}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        return filled((length,), kind, 1, requires_grad)
    modes = THREAD.modes
    grad, modes.grad = modes.grad, False
    try:
        steps = arange(length + bool(periodic), dtype=kind.dtype, device=kind.device)
        window = shape_of(steps, length - 1 + bool(periodic))
    finally:
        modes.grad = grad
    if periodic:
        window = window.narrow(0, 0, length).detach()
    return window.requires_grad_(bool(requires_grad))


def _rounded(steps: Any, value: float) -> Tensor:
    """`value` as a tensor of the window's dtype: PyTorch rounds the factors of a half-precision window too."""
    return tensor(value, dtype=steps.dtype, device=steps._kind.device)


def _raised_cosine(steps: Any, last: int, alpha: float, beta: float) -> Any:
    return (steps * _rounded(steps, 2 * math.pi / last)).cos() * _rounded(steps, -beta) + _rounded(steps, alpha)


def _triangle(steps: Any, last: int) -> Any:
    window = steps * _rounded(steps, 2 / last)
    falling = window[(last >> 1) + 1 :]
    falling.mul_(-1).add_(2)
    return window


def _blackman(steps: Any, last: int) -> Any:
    angle = steps * _rounded(steps, math.pi / last)
    fourfold = (angle * 4).cos() * _rounded(steps, 0.08)
    return fourfold - (angle * 2).cos() * 0.5 + _rounded(steps, 0.42)


def _kaiser(steps: Any, last: int, beta: float) -> Tensor:
    wide = steps if steps.dtype is float64 else steps.to(float32)
    distance = wide * (2 / last) - 1
    window = i0((1 - distance * distance).clamp_min(0).sqrt() * beta) / i0(tensor(beta, dtype=wide.dtype))
    return window.to(steps.dtype)


def _check_needs(name: str, periodic: Any, **given: Any) -> None:
    """Further numbers may only be given after `periodic`."""
    for word, value in given.items():
        if value is not None and periodic is None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: {word}={value} needs periodic= beside it"
            )


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Hann window: a cosine raised to touch zero."""
    options = (dtype, layout, device, requires_grad)
    return _window("hann_window", lambda k, last: _raised_cosine(k, last, 0.5, 0.5), window_length, periodic, options)


def hamming_window(
    window_length: int, periodic: bool | None = None, alpha: float | None = None, beta: float | None = None, *,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Hamming window: alpha - beta * cosine, by default 0.54 and 0.46."""
    _check_needs("hamming_window", periodic, alpha=alpha, beta=beta)
    options = (dtype, layout, device, requires_grad)
    raised = 0.54 if alpha is None else alpha
    amplitude = 0.46 if beta is None else beta
    return _window(
        "hamming_window", lambda k, last: _raised_cosine(k, last, raised, amplitude), window_length,
        periodic is None or periodic, options,
    )  # fmt: skip


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Bartlett window: a triangle."""
    options = (dtype, layout, device, requires_grad)
    return _window("bartlett_window", _triangle, window_length, periodic, options)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Blackman window: a sum of two cosines."""
    options = (dtype, layout, device, requires_grad)
    return _window("blackman_window", _blackman, window_length, periodic, options)


def kaiser_window(
    window_length: int, periodic: bool | None = None, beta: float | None = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The Kaiser window, the narrower the larger `beta` is, which is 12 by default."""
    _check_needs("kaiser_window", periodic, beta=beta)
    options = (dtype, layout, device, requires_grad)
    narrow = 12.0 if beta is None else float(beta)
    return _window(
        "kaiser_window", lambda k, last: _kaiser(k, last, narrow), window_length, periodic is None or periodic, options
    )


for _function in (hann_window, hamming_window, bartlett_window, blackman_window, kaiser_window):
    export(guard(_function), _function.__name__)


# ----- torch.signal.windows: symmetric by default -------------------------------------------------------------------


def _checked(name: str, M: Any, dtype: Any, layout: Any, device: Any) -> Kind:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype is None:
        dtype = DEFAULTS.float
    if dtype not in (float32, float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return chosen_kind(dtype, device, None, name)


def _trivial(M: Any, kind: Kind, requires_grad: bool) -> Tensor:
    """The window of no point or of one."""
    if M not in (0, 1):
        raise TypeError(f"linspace() received an invalid combination of arguments: M must be int, not {M}")
    return filled((int(M),), kind, 1, requires_grad)


def _points(first: float, step: float, M: Any, kind: Kind, requires_grad: bool) -> Tensor:
    last = first + (M - 1) * step
    return linspace(first, last, M, dtype=kind.dtype, device=kind.device, requires_grad=requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(f"Center must be None for symmetric windows, got {center}")
    kind = _checked("exponential", M, dtype, layout, device)
    if M == 0:
        return _trivial(M, kind, requires_grad)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2
    distance = _points(-center / tau, 1 / tau, M, kind, requires_grad)
    return (-distance.abs()).exp()


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a period of a sine."""
    kind = _checked("cosine", M, dtype, layout, device)
    if M == 0:
        return _trivial(M, kind, requires_grad)
    step = math.pi / (M + 1 if not sym and M > 1 else M)
    return _points(step / 2, step, M, kind, requires_grad).sin()


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The bell curve of standard deviation `std`."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    kind = _checked("gaussian", M, dtype, layout, device)
    if M == 0:
        return _trivial(M, kind, requires_grad)
    step = 1 / (std * math.sqrt(2))
    distance = _points(-(M if not sym and M > 1 else M - 1) / 2 * step, step, M, kind, requires_grad)
    return (-(distance**2)).exp()


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Kaiser window, the narrower the larger `beta` is."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    kind = _checked("kaiser", M, dtype, layout, device)
    if M < 2:
        return _trivial(M, kind, requires_grad)
    step = 2.0 * beta / (M if not sym else M - 1)
    last = min(beta, -beta + (M - 1) * step)
    k = linspace(-beta, last, M, dtype=kind.dtype, device=kind.device, requires_grad=requires_grad)
    peak = tensor(beta, dtype=kind.dtype, device=kind.device)
    return i0((beta * beta - k**2).sqrt()) / i0(peak)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A sum of cosines: a[0] - a[1] cos(x) + a[2] cos(2 x) - ..."""
    kind = _checked("general_cosine", M, dtype, layout, device)
    if M < 2:
        return _trivial(M, kind, requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError(f"Coefficients must be a list/tuple, not {type(a).__name__}")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    angle = _points(0, 2 * math.pi / (M if not sym else M - 1), M, kind, requires_grad)
    signed = [(-1) ** position * weight for position, weight in enumerate(a)]
    weights = tensor(signed, dtype=kind.dtype, device=kind.device, requires_grad=requires_grad)
    order = arange(weights.shape[0], dtype=kind.dtype, device=kind.device)
    return (weights.unsqueeze(-1) * (order.unsqueeze(-1) * angle).cos()).sum(0)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Bartlett window: a triangle that is zero at both ends."""
    kind = _checked("bartlett", M, dtype, layout, device)
    if M < 2:
        return _trivial(M, kind, requires_grad)
    return 1 - _points(-1, 2 / (M if not sym else M - 1), M, kind, requires_grad).abs()


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) * cosine."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def _sum_of_cosines(name: str, weights: tuple[float, ...], doc: str) -> None:
    def function(
        M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        return general_cosine(
            M, a=weights, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    export(guard(function, f"signal.windows.{name}"), f"signal.windows.{name}")


_sum_of_cosines("hamming", (0.54, 0.46), "The Hamming window.")
_sum_of_cosines("hann", (0.5, 0.5), "The Hann window: a cosine raised to touch zero.")
_sum_of_cosines("blackman", (0.42, 0.5, 0.08), "The Blackman window.")
_sum_of_cosines("nuttall", (0.3635819, 0.4891775, 0.1365995, 0.0106411), "Nuttall's window of least side lobes.")
for _window_function in (exponential, cosine, gaussian, kaiser, general_cosine, bartlett, general_hamming):
    _name = f"signal.windows.{_window_function.__name__}"
    export(guard(_window_function, _name), _name)
