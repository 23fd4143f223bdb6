"""The classes `torch.sparse.FloatTensor` and so on, which make a COO tensor of one dtype."""

from __future__ import annotations

from typing import Any

from .._core.dtype import NAMES, dtype
from .._core.process.caller import warn_user_once
from .._ops.sparse.tensors import sparse_coo_tensor


def _class(name: str, element: dtype) -> type:
    def make(cls: type, *args: Any) -> Any:
        """The tensor of indices and values, with a size or without; of a size alone; or an empty one."""
        is_size = all(isinstance(each, int) for each in args)
        given = (args,) if args and is_size else args or ((0,),)
        if len(given) > 1:
            shape = ", shape" if len(given) > 2 else ""
            warn_user_once(
                f"torch.sparse.SparseTensor(indices, values{shape}, *, device=) is deprecated. Please use "
                f"torch.sparse_coo_tensor(indices, values{shape}, dtype=, device=)."
            )
        return sparse_coo_tensor(*given, dtype=element)

    return type(name, (), {"__new__": make, "dtype": element, "__module__": "torch.sparse"})


CLASSES = {
    f"{name}Tensor": _class(f"{name}Tensor", NAMES[element])
    for name, element in (
        ("BFloat16", "bfloat16"), ("Byte", "uint8"), ("Char", "int8"), ("Double", "float64"), ("Float", "float32"),
        ("Half", "float16"), ("Int", "int32"), ("Long", "int64"), ("Short", "int16"),
    )
}  # fmt: skip
