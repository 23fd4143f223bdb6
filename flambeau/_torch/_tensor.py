"""`torch._tensor`: the class of tensors under the name of its module."""

from __future__ import annotations

from flambeau._core.tensor import Tensor
from flambeau._serialization.rebuild import rebuild_from_type as _rebuild_from_type
from flambeau._serialization.rebuild import rebuild_from_type_v2 as _rebuild_from_type_v2
from flambeau.overrides import handle_torch_function, has_torch_function

__all__ = ["Tensor", "_rebuild_from_type", "_rebuild_from_type_v2", "handle_torch_function", "has_torch_function"]
