"""The classes of named results, as in `torch.return_types.max`."""

from __future__ import annotations

from ._ops.return_types import RETURN_TYPES

globals().update(RETURN_TYPES)
