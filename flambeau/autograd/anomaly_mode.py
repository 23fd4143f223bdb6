"""Anomaly detection: which forward line made the derivative that failed or gave NaN?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.modes import THREAD, set_anomaly
from .._core.node import Node, recorded_at
from .._core.process.caller import describe_place


class detect_anomaly:
    """In this context backward passes check every gradient for NaN, and failures show the forward line."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        modes = THREAD.modes
        self._before = modes.anomaly, modes.anomaly_check_nan
        set_anomaly(True, self.check_nan)

    def __exit__(self, *exception: object) -> None:
        set_anomaly(*self._before)


class set_detect_anomaly:
    """Switch anomaly detection on or off: as a function from now on, as a context for its block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        modes = THREAD.modes
        self._before = modes.anomaly, modes.anomaly_check_nan
        set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        set_anomaly(*self._before)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread.

    Returns:
        bool: whether it is on.

    Example:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     torch.is_anomaly_enabled()
        True
    """
    return THREAD.modes.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN.

    Returns:
        bool: whether it does.

    Example:
        >>> torch.is_anomaly_check_nan_enabled()
        True
    """
    return THREAD.modes.anomaly_check_nan


def run_watched(node: Node, grads: list[Any]) -> Sequence[Any]:
    """Run a node's formula; on an error or a NaN, point at the forward line."""
    try:
        results = node.apply(grads)
    except Exception:
        warn_of_forward(node)
        raise
    if THREAD.modes.anomaly_check_nan:
        for number, gradient in enumerate(results):
            if gradient is not None and not gradient._kind.dataless and np.isnan(gradient._array).any():
                warn_of_forward(node)
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {number}th output. The forward operation was "
                    f"recorded at {describe_place(recorded_at(node))}"
                )
    return results


def warn_of_forward(node: Node) -> None:
    """Show the stack of the forward call that recorded `node`."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information. The forward operation was recorded at "
            f"{describe_place(recorded_at(node))}",
            stacklevel=2,
        )
    else:
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}",
            stacklevel=2,
        )


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection for good.

    Args:
        enabled (bool): whether it is on.
        check_nan (bool): whether NaN in gradients is an error. Default: `True`.

    Example:
        >>> torch.set_anomaly_enabled(False)
    """
    set_anomaly(enabled, check_nan)
