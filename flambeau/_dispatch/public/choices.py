"""Choices that scripts make, of which the CPU's results do not depend: precision of products, threads."""

from __future__ import annotations

from ..._core.process.gpu_choices import CHOICES
from ..._core.process.threads import num_threads


class _Choices:
    """The present ones."""

    __slots__ = ("interop_threads", "matmul_precision")

    def __init__(self) -> None:
        self.matmul_precision = "highest"
        self.interop_threads: int | None = None


_CHOICES = _Choices()


def set_float32_matmul_precision(precision: str) -> None:
    """Say how precise products of float32 matrices must be: below "highest" CUDA devices shorten operands (TF32).

    Args:
        precision (str): "highest", "high" or "medium".

    Example:
        >>> torch.set_float32_matmul_precision("highest")
    """
    if precision in ("highest", "high", "medium"):
        _CHOICES.matmul_precision = precision
        CHOICES.shortened_products = precision != "highest"
    else:
        import warnings

        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setting is left as it is",
            UserWarning,
            stacklevel=2,
        )


def get_float32_matmul_precision() -> str:
    """How precise products of float32 matrices were asked to be.

    Returns:
        str: "highest", "high" or "medium".

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    return _CHOICES.matmul_precision


def get_num_interop_threads() -> int:
    """How many ops may run side by side in PyTorch's interpreter of TorchScript; here the setting alone.

    Returns:
        int: the number.

    Example:
        >>> torch.get_num_interop_threads() > 0
        True
    """
    return num_threads() if _CHOICES.interop_threads is None else _CHOICES.interop_threads


def set_num_interop_threads(number: int) -> None:
    """Choose how many ops may run side by side.

    Args:
        number (int): the number.

    Example:
        >>> torch.set_num_interop_threads(torch.get_num_interop_threads())
    """
    if not isinstance(number, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _CHOICES.interop_threads = number


def init_num_threads() -> None:
    """Take the number of threads over from the environment: kernels have.

    Example:
        >>> torch.init_num_threads()
    """


def set_flush_denormal(mode: bool) -> bool:
    """Ask for denormal numbers to become zero. Kernels keep them: the answer says that the mode is not supported.

    Args:
        mode (bool): whether they are to become zero.

    Returns:
        False: it is not supported.

    Example:
        >>> torch.set_flush_denormal(True)
        False
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return not mode
