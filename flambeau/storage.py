"""The memory under tensors, under the names of `torch.storage`."""

from __future__ import annotations

from ._core.storage import UntypedStorage
from ._core.typed_storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
