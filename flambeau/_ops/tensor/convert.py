"""Conversions: to other dtypes and devices, and to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.arrays.abstract import empty_meta
from ..._core.arrays.lazy_signs import LazyKind, content
from ..._core.backend import moved
from ..._core.device import CPU, contiguous_format, device, is_fake, preserve_format
from ..._core.device import memory_format as MemoryFormat
from ..._core.dtype import DEFAULTS, LEGACY_NAMES, NAMES, bfloat16, complex32
from ..._core.dtype import dtype as DType
from ..._core.geometry.layout import has_format, strides_like
from ..._core.kind import Kind, kind_of
from ..._core.modes import THREAD, beside_the_ops
from ..._core.process.caller import warn_of_complex_half
from ..._core.process.defaults import device_for, fake_place
from ..._core.storage import fix_size, owner_of
from ..._core.tensor import DIRECT_TYPES, Tensor
from ..._core.version import hand_out
from ..._dispatch.axes import ELEMENTS
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.overrides import run_override
from ..._dispatch.public.protocol import explain, is_overriding
from ..._dispatch.public.registry import export_method, public
from ..create.constants import CPU_KINDS, as_dtype, from_numpy
from .copy import copied, recorded


# The engine converts the gradient to the input's dtype.
@primitive("ToCopyBackward0", axes=ELEMENTS, self=lambda grad: grad, fuses=False, reads_narrow=True)
def _to_copy(self: Array, dtype: DType, memory_format: Any) -> Array:
    return copied(self, memory_format, dtype.numpy)


assert _to_copy.node_class is not None
_to_copy.node_class.only_casts = True


@primitive("ToCopyBackward0", axes=ELEMENTS, self=lambda grad, source: grad.to(source))
def _to_device(self: Array, dtype: DType, memory_format: Any, source: device) -> Array:
    return copied(self, memory_format, dtype.numpy)


def converted(input: Tensor, kind: Kind, memory_format: Any) -> Tensor:
    """A copy of `input` as another kind of tensor."""
    if kind.dtype is complex32:
        warn_of_complex_half()
    place, source = kind.device, input._kind.device
    if place is source and (not place.dataless or THREAD.modes.interpreters):  # who writes ops down has to see this one
        return _to_copy(input, kind.dtype, memory_format)
    if source.dataless and not place.dataless:
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Use torch.empty_like(x, device=...) for an uninitialised tensor."
        )
    array_type = kind.dtype.numpy
    if place.dataless:
        strides = tuple([step * array_type.itemsize for step in strides_like(input._array, memory_format)])
        array = empty_meta(input._array.shape, array_type, strides)
    else:
        array = content(input)
        dense = array.flags.c_contiguous and memory_format in (None, preserve_format)
        crosses = type(array) is not kind.backend.array_class or kind.backend.ordinal != input._kind.backend.ordinal
        if not dense or array.dtype != array_type or not crosses:
            array = copied(array, memory_format, array_type)
        array = moved(array, kind.backend)
    return recorded(_to_device, (input, kind.dtype, memory_format, source), array, kind)


def _targets(args: tuple[Any, ...]) -> tuple[Any, Any, list[Any]]:
    """Dtype and device that the positional arguments of `to` name, and the flags that follow them."""
    if not args:
        return None, None, []
    first, *rest = args
    if isinstance(first, DType):
        return first, None, rest
    if isinstance(first, Tensor):
        return first.dtype, first._kind.device, rest
    if first is None or isinstance(first, (str, device)) or (isinstance(first, int) and not isinstance(first, bool)):
        wanted = rest[0] if rest else None
        return wanted, first, rest[1:]
    if isinstance(first, type):
        return as_dtype(first, "to"), None, rest
    if isinstance(first, (float, complex, bool)):
        return as_dtype(type(first), "to"), None, rest
    raise TypeError(
        f"to() received an invalid combination of arguments: {type(first).__name__} is no dtype, device or tensor"
    )


@public(function=False)
def to(
    input: Tensor, *args: Any, dtype: Any = None, device: Any = None,
    non_blocking: bool = False, copy: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """The tensor as another dtype, on another device, or both; the tensor itself if it is that already.

    `x.to(torch.float64)`, `x.to("cpu")`, `x.to("cpu", torch.float64)`, `x.to(another_tensor)`.
    """
    if len(args) == 1 and type(args[0]) is DType and device is None:
        kind = input._kind
        if args[0] is not kind.dtype:
            kind = CPU_KINDS[args[0]] if kind.is_cpu else kind_of(args[0], kind.device)
    else:
        named_dtype, named_device, flags = _targets(args)
        if len(flags) > 2 or not all(isinstance(each, (bool, type(None))) for each in flags):
            raise TypeError(
                f"to() received an invalid combination of arguments: {[type(each).__name__ for each in args]}"
            )
        if flags:
            non_blocking = non_blocking or bool(flags[0])
        if len(flags) == 2:
            copy = copy or bool(flags[1])
        if (dtype is not None and named_dtype is not None) or (device is not None and named_device is not None):
            raise TypeError("to() received an invalid combination of arguments: dtype or device is given twice")
        dtype = named_dtype if dtype is None else dtype
        device = named_device if device is None else device
        place = input._kind.device
        if device is not None:
            place = fake_place(device) if is_fake(place) else device_for(device)
        kind = kind_of(input._kind.dtype if dtype is None else as_dtype(dtype, "to"), place)
        copy = copy or (kind.is_cpu and str(device) == "cpu:0")  # as in PyTorch: a numbered CPU is another one
    if kind.plain is input._kind.plain and not copy and (memory_format is None or _suits(input, memory_format)):
        return input
    if non_blocking and kind.backend is not input._kind.backend:
        with (input._kind if kind.is_cpu else kind).backend.without_waiting():
            return converted(input, kind.plain, memory_format)
    return converted(input, kind.plain, memory_format)


def _suits(input: Tensor, memory_format: Any) -> bool:
    return memory_format is preserve_format or has_format(input._array, memory_format)


def _as_dtype_method(name: str, target: DType) -> None:
    kind = CPU_KINDS[target]

    def method(input: Tensor, *, memory_format: Any = None) -> Tensor:
        if type(input) in DIRECT_TYPES:
            if memory_format is None and input._kind.is_cpu:
                try:
                    return input if input._kind is kind else converted(input, kind, None)
                except MemoryError as error:
                    explain(error, name, {})
                    raise
        elif is_overriding(input, name, "input", 1):
            return run_override(method, (input,), (input,), {"memory_format": memory_format})
        if memory_format is not None and not isinstance(memory_format, MemoryFormat):
            found = type(memory_format).__name__
            raise TypeError(f"{name}(): argument 'memory_format' must be torch.memory_format, not {found}")
        if input._kind.dtype is target and memory_format is contiguous_format:
            return input  # PyTorch looks no further than the dtype here
        return to(input, target, memory_format=memory_format)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor as {target}."
    export_method(method, name)


for _name in ("float", "double", "half", "bfloat16", "int", "long", "short", "chalf", "cfloat", "cdouble"):
    _as_dtype_method(_name, NAMES[_name])
for _name, _dtype in (("char", "int8"), ("byte", "uint8"), ("bool", "bool")):
    _as_dtype_method(_name, NAMES[_dtype])


@public(function=False)
def cpu(input: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """The tensor on the CPU."""
    return to(input, CPU, memory_format=memory_format)


@public(function=False)
def cuda(input: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = preserve_format) -> Tensor:
    """The tensor on a CUDA device."""
    place = "cuda" if device is None else device
    return to(input, place, non_blocking=non_blocking, memory_format=memory_format)


_LEGACY_KINDS = {
    f"torch.{prefix}{name}Tensor": (dtype, place)
    for prefix, place in (("", "cpu"), ("cuda.", "cuda"), ("sparse.", "cpu"), ("cuda.sparse.", "cuda"))
    for dtype, name in LEGACY_NAMES.items()
}


def kind_named(text: str) -> Kind:
    """The kind of tensors that a legacy name such as 'torch.FloatTensor' means."""
    found = _LEGACY_KINDS.get(text.replace("flambeau.", "torch."))
    if text == "torch.Tensor":
        found = DEFAULTS.float, "cpu"
    if found is None:
        raise ValueError(f"invalid type: '{text}'; expected a name such as 'torch.FloatTensor'")
    return kind_of(found[0], device_for(found[1]))


@public(function=False, name="type")
def type_(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The legacy name of the tensor's type, such as 'torch.FloatTensor'; with an argument, the tensor as that type."""
    if dtype is None:
        return input._kind.legacy_name
    if isinstance(dtype, DType):
        return to(input, dtype)
    if isinstance(dtype, str):
        kind = kind_named(dtype)
    elif dtype is Tensor:
        kind = kind_named("torch.Tensor")
    else:
        found = getattr(dtype, "kind", None)
        if not isinstance(found, Kind):
            raise TypeError(f"dtype must be a type, str, or dtype object, not {dtype!r}")
        kind = found
    if input._kind.indirect:  # a sparse one keeps its layout, whichever the type has
        return input.to(kind.device, kind.dtype)
    return input if kind is input._kind.plain else converted(input, kind, None)


@public(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor as the dtype, and on the device, of `other`."""
    return to(input, other)


@public(function=False)
def numpy(input: Tensor, *, force: bool = False) -> Any:
    """The elements as a NumPy array that shares the tensor's memory; `force` allows a detached copy where it cannot."""
    source = input
    if force:
        source = source.detach().cpu().resolve_conj().resolve_neg()
    elif source.requires_grad and THREAD.modes.grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    beside_the_ops()
    kind = source._kind
    if isinstance(kind, LazyKind):
        bit, name = ("conjugate", "resolve_conj") if kind.conj else ("negative", "resolve_neg")
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{name}().numpy() instead: the array "
            "would show what is in memory, not the elements."
        )
    if source._extra is not None and source._extra.has_no_memory:
        raise RuntimeError(
            f".numpy() is not supported for tensor subclasses: the class {type(source).__name__} has the elements; "
            "ask a tensor that it wraps"
        )
    if is_fake(kind.device):
        raise RuntimeError(".numpy() is not supported for tensor subclasses: a fake tensor has no elements")
    if not kind.is_cpu:
        raise TypeError(
            f"can't convert {kind.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if kind.dtype is bfloat16 or kind.dtype.wide is not None or kind.dtype.numpy.names:
        raise TypeError(
            f"Got unsupported ScalarType {LEGACY_NAMES[kind.dtype]}: NumPy has no such type. Convert the tensor first, "
            f"for example with .to({kind.dtype.wide or 'torch.float32'})."
        )
    array = source._array
    fix_size(owner_of(array))
    hand_out(source._counter)
    return array.view()


def _array_protocol(input: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's way to turn the tensor into an array."""
    array = numpy(input)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"Unable to avoid copy while creating an array of {dtype} from a {input.dtype} tensor")
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(input: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What NumPy's functions make of their result when the tensor was an argument: a tensor again."""
    array = np.asarray(array)
    if array.dtype == bool:  # as PyTorch has it: comparisons give uint8
        array = array.astype(np.uint8)
    return from_numpy(array)


export_method(_array_protocol, "__array__")
export_method(_array_wrap, "__array_wrap__")
