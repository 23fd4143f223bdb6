"""Page-locked memory for batches that are to be copied to an accelerator."""

from __future__ import annotations

import collections.abc
import contextlib
import copy
import warnings
from typing import Any

from ...._core.tensor import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with its tensors, at any depth of containers, and objects that have a `pin_memory` method pinned."""
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        pinned: Any = data
        return pinned.pin_memory() if device is None else pinned.pin_memory(device)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return rebuilt(data, {key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, collections.abc.Sequence):
        return rebuilt(data, [pin_memory(each, device) for each in data])
    return data


def rebuilt(original: Any, parts: Any) -> Any:
    """`parts` in a container like `original`; a plain dict or list where its class cannot be made from them."""
    kind: Any = type(original)
    if isinstance(original, tuple) and hasattr(original, "_fields"):
        return kind(*parts)
    with contextlib.suppress(TypeError):
        if isinstance(original, collections.abc.MutableMapping):
            # A copy keeps what the class holds beside its items, such as a default factory.
            clone: Any = copy.copy(original)
            clone.update(parts)
            return clone
        if isinstance(original, collections.abc.MutableSequence):
            clone = copy.copy(original)
            for position, part in enumerate(parts):
                clone[position] = part
            return clone
        return kind(parts)
    return parts


def pins(wanted: bool) -> bool:
    """Whether batches are to be pinned: if it is wanted and there is an accelerator to pin for."""
    from .... import cuda

    if wanted and not cuda.is_available():
        message = (
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
        )
        warnings.warn(message, UserWarning, stacklevel=4)
        return False
    return wanted
