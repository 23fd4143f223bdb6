"""How tensors print.

The work is done on NumPy arrays by `format_array`; `tensor_repr` reads what it needs off a tensor. A large array is cut
down to its edges first, so that the cost of printing depends on what is shown and not on what is stored.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.lazy_signs import content
from ..arrays.narrow import widened
from ..backend import to_host
from ..device import is_fake
from ..dtype import LEGACY_NAMES, is_packed

if TYPE_CHECKING:
    import numpy.typing as npt

_DEFAULT_COMPLEX = {"torch.float64": "torch.complex128"}  # every other default float goes with complex64


class _PrintOptions:
    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth: float = 80
        self.sci_mode: bool | None = None


_options = _PrintOptions()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print, for the whole process.

    `profile` ("default", "short" or "full") is applied first and the other arguments on top of it; what is None stays
    as it is. The exception is `sci_mode`, where None means "decide for each tensor" and so is always set.

    Args:
        precision (int, optional): digits after the point; 4 at first.
        threshold (float, optional): from how many elements on only the edges are shown; 1000 at first.
        edgeitems (int, optional): how many elements are shown at each edge; 3 at first.
        linewidth (float, optional): characters in a line; 80 at first.
        profile (str, optional): "default", "short" or "full" sets all of these.
        sci_mode (bool, optional): whether to use the scientific notation; None decides by the values.

    Example:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1 / 3])
        tensor([0.33])
        >>> torch.set_printoptions(profile="default")
    """
    chosen = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen.update((name, value) for name, value in given.items() if value is not None)
    for name, value in chosen.items():
        setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keyword arguments for `set_printoptions`."""
    return dict(vars(_options))


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print with other options inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_repr(
    tensor: Any,
    *,
    default_dtype: object = "torch.float32",
    prefix: str = "tensor(",
    contents: str | None = None,
    tangent: object | None = None,
) -> str:
    """The text of a tensor: `tensor(...)` with its values, and whatever about it is not the default.

    A subclass passes `prefix`, its own name with a parenthesis. `contents` replaces the values. `tangent` is the
    forward gradient of a dual tensor.
    """
    try:
        grad_fn = None if tensor.grad_fn is None else type(tensor.grad_fn).__name__
    except RuntimeError:  # a view whose history was overwritten has no grad_fn to show, and must still print
        grad_fn = "Invalid"
    if getattr(tensor, "is_quantized", False):  # what stands in for a tensor while it is shown says nothing of it
        from .quantized_printing import quantized_repr

        return quantized_repr(tensor)
    if is_packed(tensor.dtype) and contents is None:
        raise NotImplementedError(
            f'"_local_scalar_dense_cpu" not implemented for {LEGACY_NAMES[tensor.dtype]!r}: such a tensor has no '
            "numbers to print. Look at its bytes, with .view(torch.uint8)"
        )
    place = str(tensor.device)
    if is_fake(tensor._kind.device) and prefix == "tensor(":
        prefix = "FakeTensor("
    return format_array(
        None if tensor._kind.dataless else to_host(content(tensor)),
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype),
        default_dtype=str(default_dtype),
        device=None if place == "cpu" else place,
        requires_grad=tensor.requires_grad,
        grad_fn=grad_fn,
        tangent=None if tangent is None else repr(tangent),
        prefix=prefix,
        contents=contents,
    )


def format_array(
    array: npt.NDArray[Any] | None,
    *,
    dtype: str,
    shape: Sequence[int] = (),
    default_dtype: str = "torch.float32",
    device: str | None = None,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    tangent: str | None = None,
    prefix: str = "tensor(",
    contents: str | None = None,
) -> str:
    """The text of a tensor that holds `array`, or that has only a `shape` (the meta device) when `array` is None.

    Names of dtypes are full (`"torch.float32"`); `device` is None where it goes without saying.

    >>> format_array(np.array([1.0, 2.5]), dtype="torch.float64", requires_grad=True)
    'tensor([1.0000, 2.5000], dtype=torch.float64, requires_grad=True)'
    """
    size = tuple(shape) if array is None else array.shape
    has_values = array is not None and array.size > 0
    # Without values to look at, only the default dtype is obvious.
    obvious_dtypes = [default_dtype]
    if has_values:
        obvious_dtypes += ["torch.int64", "torch.bool", _DEFAULT_COMPLEX.get(default_dtype, "torch.complex64")]

    suffixes = []
    if device is not None:
        suffixes.append(f"device='{device}'")
    brackets_tell_size = _options.edgeitems != 0 if has_values else len(size) == 1
    if array is None or not brackets_tell_size:
        suffixes.append(f"size={size}")
    if dtype not in obvious_dtypes:
        suffixes.append(f"dtype={dtype}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")

    if contents is None:
        contents = "..." if array is None else _format_values(array, indent=len(prefix))
    return _append_suffixes(prefix + contents, suffixes, indent=len(prefix))


def _append_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """`text` closed by a parenthesis, after suffixes that start a new line where they do not fit on the last one.

    `new_line`: the first of them does in any case.
    """
    pieces = [text]
    column = len(text) - text.rfind("\n") + 1  # PyTorch counts the last line of the values as two columns longer
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > _options.linewidth:
            new_line = False
            pieces.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            pieces.append(", " + suffix)
            column += len(suffix) + 2
    return "".join(pieces) + ")"


def _format_values(array: npt.NDArray[Any], indent: int) -> str:
    """The elements of an array in nested brackets."""
    if array.size == 0:
        return "[]"
    edgeitems = max(_options.edgeitems, 0)
    summarize = array.size > _options.threshold
    if summarize and array.ndim > 0 and edgeitems == 0:
        return "[...]"
    is_cut = tuple(summarize and length > 2 * edgeitems for length in array.shape)
    if any(is_cut):
        kept = [
            np.r_[:edgeitems, length - edgeitems : length] if cut else np.arange(length)
            for length, cut in zip(array.shape, is_cut, strict=True)
        ]
        array = array[np.ix_(*kept)]

    elements, width = _format_elements(array.ravel())
    if array.ndim == 0:
        return elements[0]
    return _Layout(elements, width + 2, array.shape, is_cut, edgeitems).block(0, 0, indent)


class _Layout:
    """Arranges formatted elements, in row-major order, in nested brackets.

    `element_length` includes the separator; `is_cut` says for each axis whether "..." stands after `edgeitems` entries.
    """

    def __init__(
        self,
        elements: list[str],
        element_length: int,
        shape: tuple[int, ...],
        is_cut: tuple[bool, ...],
        edgeitems: int,
    ) -> None:
        self.elements = elements
        self.element_length = element_length
        self.shape = shape
        self.is_cut = is_cut
        self.edgeitems = edgeitems

    def block(self, axis: int, start: int, indent: int) -> str:
        """The brackets of one slice: its elements begin at `start`, its opening bracket stands in column `indent`."""
        length = self.shape[axis]
        if axis == len(self.shape) - 1:
            return self._row(self.elements[start : start + length], indent)
        stride = math.prod(self.shape[axis + 1 :])
        blocks = [self.block(axis + 1, start + i * stride, indent + 1) for i in range(length)]
        if self.is_cut[axis]:
            blocks.insert(self.edgeitems, "...")
        newlines = "\n" * (len(self.shape) - 1 - axis)
        return "[" + ("," + newlines + " " * (indent + 1)).join(blocks) + "]"

    def _row(self, elements: list[str], indent: int) -> str:
        if self.is_cut[-1]:
            elements = [*elements[: self.edgeitems], " ...", *elements[self.edgeitems :]]
        fitting = (_options.linewidth - indent) / self.element_length
        per_line = max(1, math.floor(min(fitting, len(elements))))  # the width may be infinite
        lines = [", ".join(elements[i : i + per_line]) for i in range(0, len(elements), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _format_elements(flat: npt.NDArray[Any]) -> tuple[list[str], int]:
    """The aligned texts of the elements, and the width that line breaking counts for each."""
    flat = widened(flat)
    if flat.dtype.kind == "c":
        reals, real_width = _format_elements(flat.real)
        imaginaries, imaginary_width = _format_elements(flat.imag)
        return [
            real + _with_sign(imaginary) + "j" for real, imaginary in zip(reals, imaginaries, strict=True)
        ], real_width + imaginary_width + 1
    if flat.dtype.kind in "biu":
        texts = [str(value) for value in flat.tolist()]
        width = max(map(len, texts))
    else:
        texts, width = _format_floats(flat.astype(np.float64))
    return [text.rjust(width) for text in texts], width


def _with_sign(imaginary: str) -> str:
    text = imaginary.lstrip()
    return text if text.startswith("-") else "+" + text


def _format_floats(flat: npt.NDArray[np.float64]) -> tuple[list[str], int]:
    """The texts of the elements in one common notation, not yet aligned, and their width.

    Only finite numbers other than zero have a say in the notation and the width.
    """
    decisive = np.isfinite(flat) & (flat != 0)
    numbers = flat[decisive]
    whole = bool((numbers == np.ceil(numbers)).all())
    scientific = numbers.size > 0 and _choose_scientific(numbers, whole)
    digits = 0 if whole and not scientific else _options.precision
    notation = f".{digits}e" if scientific else f".{digits}f"
    texts = [format(value, notation) for value in flat.tolist()]
    if whole and not scientific:  # a point tells whole floats from integers
        texts = [text + "." if finite else text for text, finite in zip(texts, np.isfinite(flat).tolist(), strict=True)]
    widths = (len(text) for text, counts in zip(texts, decisive.tolist(), strict=True) if counts)
    return texts, max(widths, default=1)


def _choose_scientific(numbers: npt.NDArray[np.float64], whole: bool) -> bool:
    if _options.sci_mode is not None:
        return _options.sci_mode
    magnitudes = np.abs(numbers)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest / smallest > 1000 or largest > 1e8 or (not whole and smallest < 1e-4)
