"""Process-wide settings that scripts make: threads, determinism."""

from __future__ import annotations

from ..._core.process.determinism import DETERMINISM
from ..._core.process.threads import change_num_threads, num_threads


def get_num_threads() -> int:
    """How many threads kernels may use.

    Returns:
        int: the number.

    Example:
        >>> torch.get_num_threads() > 0
        True
    """
    return num_threads()


def set_num_threads(number: int, /) -> None:
    """Choose how many threads kernels may use, the calling one included.

    Args:
        number (int): the number.

    Example:
        >>> torch.set_num_threads(torch.get_num_threads())
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    if number >= 2**31:
        raise ValueError(f"Overflow when unpacking long: {number} threads")
    if number <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    from ..._backends.cpu.linalg.blas import limit_threads

    change_num_threads(number)
    limit_threads(number)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Refuse ops whose result may depend on an order, or warn of them, and fill memory that nobody wrote.

    Args:
        mode (bool): whether ops must be deterministic.
        warn_only (bool): whether those that are not only warn. Default: `False`.

    Example:
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"use_deterministic_algorithms(): argument {name} must be bool, not {type(value).__name__}")
    DETERMINISM.set(mode, warn_only, DETERMINISM.fill_wanted)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for.

    Returns:
        bool: whether they were.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return DETERMINISM.asked


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ops that are not deterministic only warn.

    Returns:
        bool: whether they only warn.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return DETERMINISM.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by one word or number: "default" (0: not), "warn" (1) or "error" (2).

    Args:
        debug_mode (int or str): the word or the number.

    Example:
        >>> torch.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got " + debug_mode
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in range(len(_DEBUG_MODES)):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as in `set_deterministic_debug_mode`.

    Returns:
        int: the mode.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return 0 if not DETERMINISM.asked else 1 if DETERMINISM.warn_only else 2
