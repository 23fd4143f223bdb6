"""The short-time Fourier transform and its inverse: the spectra of overlapping windows of a signal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.lazy_signs import every_element
from ..._core.backend import read
from ..._core.dtype import FLOAT, LEGACY_NAMES
from ..._core.process.caller import warn_user_once
from ..._core.tensor import Tensor
from ..._dispatch.arguments.autocast_rules import FULL, on
from ..._dispatch.arguments.scalar import integer
from ..._dispatch.public.registry import public
from ..create.constants import ones
from ..nn.image.pad import constant_pad_nd, pad
from ..shape.complex_view import view_as_complex, view_as_real
from ..shape.conjugate import resolve_conj
from ..shape.parts import _unfold_backward, narrow
from ..shape.view import wrap_dim
from .fft import NOTHING, ROOT, WHOLE, _fft_c2c, _fft_c2r, _fft_r2c, transformable


def _count(caller: str, word: str, value: Any, default: int | None = None) -> int:
    if value is None and default is not None:
        return default
    number = integer(value)
    if number is None:
        raise TypeError(f"{caller}(): argument '{word}' must be int, not {type(value).__name__}")
    return number


def _described(caller: str, input: Tensor, window: Any, **numbers: Any) -> str:
    """The call, for the errors about it."""
    shown = "None" if window is None else f"Tensor{list(window._array.shape)}"
    parts = [f"{name}={value}" for name, value in numbers.items()]
    return f"{caller}({input._kind.dtype}{list(input._array.shape)}, {', '.join(parts)}, window={shown})"


def _check_window(caller: str, window: Any) -> None:
    if window is not None and not isinstance(window, Tensor):
        raise TypeError(f"{caller}(): argument 'window' must be Tensor, not {type(window).__name__}")


def _ones(length: int, input: Tensor, dtype: Any) -> Tensor:
    return ones(length, dtype=dtype, device=input.device)


def _centred(window: Tensor, n_fft: int) -> Tensor:
    """`window` with zeros on both sides."""
    missing = n_fft - window._array.shape[0]
    if missing == 0:
        return window
    return constant_pad_nd(window, (missing // 2, missing - missing // 2))


def _padded(input: Tensor, amount: int, mode: str) -> Tensor:
    """The signals with `amount` further samples on both sides."""
    shape = input._array.shape
    framed = pad(input.view((1,) * (3 - len(shape)) + shape), (amount, amount), mode)
    return framed.view(framed._array.shape[framed._array.ndim - len(shape) :])


@public(autocast=on(cpu=FULL))
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of windows of `n_fft` samples, `hop_length` apart: a column for each window."""
    n_fft = _count("stft", "n_fft", n_fft)
    hop = _count("stft", "hop_length", hop_length, n_fft // 4)
    width = _count("stft", "win_length", win_length, n_fft)
    _check_window("stft", window)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false.")
    if center:
        input = _padded(input, n_fft // 2, pad_mode)
    if window is None:
        warn_user_once(
            "A window was not provided. A rectangular window will be applied, which is known to cause spectral "
            "leakage: torch.hann_window(n_fft) is better. Give window=torch.ones(n_fft) to suppress this warning."
        )
    is_complex = input._kind.dtype.is_complex or (window is not None and window._kind.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    _check_stft(input, n_fft, hop, width, window, normalized, onesided, return_complex)
    signals = input if input._array.ndim == 2 else input.unsqueeze(0)
    if align_to_window:
        missing = n_fft - width
        signals = constant_pad_nd(signals, (missing // 2, missing - missing // 2))
    frames = signals.unfold(1, n_fft, hop)
    if window is None and width < n_fft:
        window = _ones(width, input, input._kind.dtype)
    if window is not None:
        frames = frames * _centred(window, n_fft)
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    scale = ROOT if normalized else NOTHING
    transformable(frames)
    if is_complex:
        result = _fft_c2c(frames, (2,), scale, True)
    else:
        result = _fft_r2c(frames, (2,), scale, onesided is None or onesided)
    result = result.transpose_(1, 2)
    if input._array.ndim == 1:
        result = result.squeeze_(0)
    if return_complex or return_complex is None:
        return result
    warn_user_once(
        "stft with return_complex=False is deprecated. In a future pytorch release it will raise an error: use "
        "torch.view_as_real on the complex result."
    )
    return view_as_real(result)


def _check_stft(
    input: Tensor, n_fft: int, hop: int, width: int, window: Any, normalized: Any, onesided: Any, return_complex: Any
) -> None:
    """Refuse what `stft` refuses."""
    call = _described(
        "stft", input, window, n_fft=n_fft, hop_length=hop, win_length=width, normalized=normalized,
        onesided=onesided, return_complex=return_complex,
    )  # fmt: skip
    if window is not None and window._kind.device is not input._kind.device:
        raise RuntimeError(
            f"stft input and window must be on the same device but got self on {input.device} and window on "
            f"{window.device}"
        )
    if input._kind.dtype.category < FLOAT:
        raise RuntimeError(f"{call} : expected a tensor of floating point or complex values")
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"{call} : expected a 1D or 2D tensor")
    length = input._array.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{call} : expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(
            f"{call} : expected a 1D window tensor of size equal to win_length={width}, but got window with size "
            f"{list(window._array.shape)}"
        )


@public()
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose `stft` is `input`: the windows' inverse transforms, added up where they overlap."""
    n_fft = _count("istft", "n_fft", n_fft)
    hop = _count("istft", "hop_length", hop_length, n_fft // 4)
    width = _count("istft", "win_length", win_length, n_fft)
    _check_window("istft", window)
    if window is None:
        warn_user_once(
            "A window was not provided. A rectangular window will be applied. Please provide the same window used by "
            "stft to make the inversion lossless, torch.ones(n_fft) to suppress this warning."
        )
    _check_istft(input, n_fft, hop, width, window, onesided)
    shape = input._array.shape
    half = shape[-2] != n_fft if onesided is None else onesided
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if window is not None and window._kind.dtype.is_complex and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    window = _ones(width, input, input._kind.dtype.to_real()) if window is None else window
    weights = _centred(window, n_fft)
    pairs = view_as_real(resolve_conj(input))
    spectra = view_as_complex((pairs if len(shape) == 3 else pairs.unsqueeze(0)).transpose(1, 2))
    scale = ROOT if normalized else WHOLE
    if return_complex:
        frames = _fft_c2c(spectra, (2,), scale, False)
    else:
        frames = _fft_c2r(spectra if half else narrow(spectra, 2, 0, n_fft // 2 + 1), (2,), scale, n_fft)
    frames = frames * weights.view((1, 1, n_fft))
    batch, count, _ = frames._array.shape
    total = n_fft + hop * (count - 1)
    signal = _unfold_backward(frames, (batch, total), 1, n_fft, hop)
    squares = weights.pow(2).expand((1, count, n_fft))
    envelope = _unfold_backward(squares, (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + _count("istft", "length", length)
    signal, envelope = signal[:, start : max(end, 0)], envelope[:, start : max(end, 0)]
    _check_envelope(envelope)
    signal = signal / envelope
    if len(shape) == 2:
        signal = signal.squeeze(0)
    if end > total:
        warn_user_once(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        signal = constant_pad_nd(signal, (0, end - total))
    return signal


def _check_envelope(envelope: Tensor) -> None:
    array = every_element(envelope)
    if array.size == 0:
        raise RuntimeError(
            "istft: min(): Expected reduction dim to be specified for input.numel() == 0. No samples are left."
        )
    if not envelope._kind.dataless and read((lowest := np.abs(array).min()) < 1e-11):
        raise RuntimeError(
            f"istft: window overlap add min: {lowest}. Where the windows add up to zero the signal is unknown: use a "
            "smaller hop_length, another window, or center=True"
        )


def _check_istft(input: Tensor, n_fft: int, hop: int, width: int, window: Any, onesided: Any) -> None:
    """Refuse what `istft` refuses."""
    if not input._kind.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True, got "
            f"{LEGACY_NAMES[input._kind.dtype]}."
        )
    call = _described("istft", input, window, n_fft=n_fft, hop_length=hop, win_length=width, onesided=onesided)
    shape = input._array.shape
    for dim in (-2, -3):  # counted with the real and imaginary parts as a dimension of their own
        wrap_dim(dim, len(shape) + 1)
    if 0 in shape:
        raise RuntimeError(f"{call} : input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        raise RuntimeError(f"{call} : expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}")
    half = shape[-2] != n_fft if onesided is None else onesided
    wanted, rule = n_fft, "n_fft when onesided=False"
    if half:
        wanted, rule = n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True"
    if shape[-2] != wanted:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to match {rule}, but got "
            f"{shape[-2]}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{call} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(f"{call} : Invalid window shape. window has to be 1D and length of `win_length`")
