"""A tensor's memory for other array libraries, and theirs for tensors: DLPack, `__cuda_array_interface__`.

NumPy writes and reads the DLPack structures, and for devices the library of their arrays. These do not know bfloat16,
complex32 and the 8-bit floats, so those travel through them as unsigned integers of the same size, and the type is put
right in the structure itself.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np

from ..._core.arrays.lazy_signs import LazyKind
from ..._core.device import CPU, device
from ..._core.dtype import NAMES, dtype, from_numpy_dtype
from ..._core.kind import kind_of
from ..._core.process.defaults import device_for
from ..._core.storage import fix_size, owner_of
from ..._core.tensor import Tensor
from ..._core.version import hand_out
from ..._dispatch.public.registry import export, export_method
from ..create.constants import made


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of kinds of devices.

    Example:
        >>> torch.utils.dlpack.DLDeviceType.kDLCPU.value
        1
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


_VERSION = (1, 0)
_UNSIGNED = 1
_OWN_CODES = {
    "bfloat16": 4, "complex32": 5, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13,
}  # fmt: skip
"""DLPack's type codes for the dtypes that NumPy does not have."""
_OWN_DTYPES = {(code, 8 * NAMES[name].itemsize): NAMES[name] for name, code in _OWN_CODES.items()}


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_STRUCTURES: dict[bytes, Any] = {b"dltensor": _Managed, b"dltensor_versioned": _ManagedVersioned}
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _described(capsule: Any) -> Any:
    """What a capsule is about, as a structure to read and to write."""
    for name, structure in _STRUCTURES.items():
        if _is_valid(capsule, name):
            return structure.from_address(_pointer(capsule, name)).tensor
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
        "have already constructed a tensor from it once."
    )


# ----- out ------------------------------------------------------------------------------------------------------------


def to_dlpack(tensor: Tensor, max_version: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """The tensor's memory in a DLPack capsule, which another library takes over once."""
    return _packed(tensor, max_version, copy, None)


def _packed(tensor: Tensor, max_version: tuple[int, int] | None, copy: bool | None, stream: int | None) -> Any:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"to_dlpack(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    if isinstance(tensor._kind, LazyKind):
        bit, name = ("conjugate", "resolve_conj") if tensor._kind.conj else ("negative", "resolve_neg")
        raise BufferError(f"Can't export tensors with the {bit} bit set, use tensor.{name}()")
    of_device = None if tensor._kind.is_cpu else tensor._kind.backend.functions["interchange"]
    if not tensor._kind.is_cpu and of_device is None:
        raise BufferError(f"Cannot pack tensors on {tensor.device}")
    if of_device is not None and copy:
        tensor = tensor.clone()
    array = tensor._array
    hand_out(tensor._counter)
    own = _OWN_CODES.get(tensor.dtype.name)
    if own is not None:
        array = array.view(f"u{array.itemsize}")
    if of_device is None:
        fix_size(owner_of(array))
        capsule = array.__dlpack__(max_version=max_version, copy=copy)
    else:
        capsule = of_device.exported(array, stream)
    if own is not None:
        _described(capsule).dtype.code = own
    return capsule


def _dlpack(
    input: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The tensor's memory in a DLPack capsule, as other libraries ask for it."""
    if input.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1) and input._kind.plain.is_cpu:
        raise AssertionError("stream should be None on cpu.")
    if dl_device is not None and tuple(dl_device) != _dlpack_device(input):
        raise BufferError(f"cannot export a tensor on {input.device} to the DLPack device {tuple(map(int, dl_device))}")
    return _packed(input, max_version, copy, stream)


def _dlpack_device(input: Tensor) -> tuple[DLDeviceType, int]:
    """DLPack's kind and number of the tensor's device."""
    if input.device.type == "cuda":
        return DLDeviceType.kDLCUDA, 0
    if not input._kind.plain.is_cpu:
        raise ValueError(f"Unknown device type {input.device} for Dlpack")
    return DLDeviceType.kDLCPU, 0


# ----- in -------------------------------------------------------------------------------------------------------------


class _Carrier:
    """A capsule as the object that libraries want to be given."""

    def __init__(self, capsule: Any, place: tuple[int, int]) -> None:
        self.capsule = capsule
        self.place = place

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place


def from_dlpack(ext_tensor: Any, *, device: device | str | int | None = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, by way of the DLPack protocol, or of a capsule.

    `copy` forces a copy, or forbids one. Memory that its owner says is read-only gives a tensor that cannot be written.
    """
    place = None if device is None else device_for(device)
    if place is not None and place.dataless:
        raise BufferError("Cannot pack tensors on meta")
    if not hasattr(ext_tensor, "__dlpack__"):
        tensor = _from_capsule(ext_tensor, int(_described(ext_tensor).device_type))
        return tensor.clone() if copy else tensor
    kind = int(ext_tensor.__dlpack_device__()[0])
    if kind == DLDeviceType.kDLCUDA and place is not CPU:
        stream = _of_device().queue()
        tensor = _from_capsule(ext_tensor.__dlpack__(stream=stream), kind)
        return tensor.clone() if copy else tensor
    return _from_capsule(_capsule_of(ext_tensor, place, copy), DLDeviceType.kDLCPU)


def _of_device() -> Any:
    """The functions for arrays of CUDA devices."""
    return kind_of(NAMES["float32"], device_for("cuda")).backend.functions["interchange"]


def _capsule_of(source: Any, place: device | None, copy: bool | None) -> Any:
    kind = int(source.__dlpack_device__()[0])
    if kind not in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost) and place is not CPU:
        raise BufferError(
            f"an array on the DLPack device of kind {kind} cannot be a tensor here: there are the CPU and CUDA devices"
        )
    options: dict[str, Any] = {} if copy is None else {"copy": copy}
    if place is CPU:
        options["dl_device"] = (1, 0)
    try:
        return source.__dlpack__(max_version=_VERSION, **options)
    except TypeError:  # a library that knows the first version of the protocol only
        if copy:
            return from_dlpack(source).clone().__dlpack__()
        return source.__dlpack__()


class _Writable:
    """Memory of an array of NumPy's as memory that may be written; it keeps the array alive."""

    def __init__(self, array: Any) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _from_capsule(capsule: Any, kind: int) -> Tensor:
    described = _described(capsule)
    may_be_written = bool(_is_valid(capsule, b"dltensor"))  # that version cannot say so: NumPy takes it for read-only
    found = described.dtype
    own = _OWN_DTYPES.get((found.code, found.bits)) if found.lanes == 1 else None
    if own is not None:
        found.code = _UNSIGNED
    if kind == DLDeviceType.kDLCUDA:
        carrier = _Carrier(capsule, (described.device_type, described.device_id))
        return _over(_of_device().imported(carrier), own, device_for("cuda"))
    array = np.from_dlpack(_Carrier(capsule, (1, 0)))
    return _over(np.asarray(_Writable(array)) if may_be_written and array.size else array, own, CPU)


def _over(array: Any, own: dtype | None, place: device) -> Tensor:
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "from_dlpack: at least one stride of the array is negative, which tensors do not have. Copy it first, for "
            "example with array.copy()."
        )
    if own is not None:
        array = array.view(own.numpy)
    return made(array, kind_of(from_numpy_dtype(array.dtype), place), False)


def _cuda_array_interface(input: Tensor) -> Any:
    """Where a tensor on a CUDA device has its memory, for libraries such as Numba."""
    if input.device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {input._kind.legacy_name} If CUDA data is "
            "required use tensor.cuda() to copy tensor to device memory."
        )
    if input.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    return input._array.__cuda_array_interface__


for _function in (from_dlpack, to_dlpack):
    export(_function, _function.__name__)
export_method(_dlpack, "__dlpack__")
export_method(_dlpack_device, "__dlpack_device__")
export_method(property(_cuda_array_interface), "__cuda_array_interface__")
