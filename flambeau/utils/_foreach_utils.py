"""What optimizers ask about lists of tensors, under the names of `torch.utils._foreach_utils`."""

from __future__ import annotations

from typing import Any, TypeAlias

from .._core.tensor import Tensor

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The accelerators with kernels over lists of tensors: none."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices with kernels for whole optimizer steps."""
    return ["cpu"]


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in _get_foreach_kernels_supported_devices()


def _has_foreach_support(tensors: list[Tensor], device: Any) -> bool:
    return _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[TensorListList, Indices]]:
    """Lists of tensors that belong together, grouped by the device and dtype of those in the first list."""
    groups: dict[tuple[Any, Any], tuple[TensorListList, Indices]] = {}
    for number, items in enumerate(zip(*tensorlistlist, strict=True)):
        first = items[0]
        if first is None:
            raise RuntimeError("the first list must hold tensors alone")
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, item in zip(lists, items, strict=True):
            into.append(item)
        if with_indices:
            indices.append(number)
    return groups
