"""New tensors: of constants (zeros, ones, full, eye), of uninitialised memory, of Python data and NumPy arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core.arrays.abstract import empty_meta, meta_array
from ..._core.arrays.from_data import array_from_data
from ..._core.arrays.lazy_signs import content
from ..._core.arrays.narrow import as_type, fill_with, number_as
from ..._core.arrays.room import ensure_room
from ..._core.backend import to_host
from ..._core.device import CPU, contiguous_format, preserve_format, strided, usable_device
from ..._core.device import memory_format as MemoryFormat
from ..._core.dtype import ALL_DTYPES, DEFAULTS, LEGACY_NAMES, WIDE_TYPES, bool_, complex32, complex128, float64, int64
from ..._core.dtype import dtype as DType
from ..._core.geometry.layout import channels_last_strides, empty_array, ordered_strides
from ..._core.kind import Kind, kind_of, kind_of_array
from ..._core.modes import THREAD
from ..._core.process.caller import warn_of_complex_half, warn_user_once
from ..._core.process.defaults import default_device, device_for
from ..._core.process.determinism import DETERMINISM, fill_unwritten
from ..._core.process.tracebacks import leave_out_library
from ..._core.size import contiguous_strides, fits_int64
from ..._core.slots import SLOTS
from ..._core.storage import adopt_array
from ..._core.tensor import DIRECT_TYPES, Tensor, new_counter
from ..._dispatch.arguments.promotion import default_of_category, is_number, scalar_category
from ..._dispatch.arguments.scalar import element, fitting, whole
from ..._dispatch.call.results import leaf
from ..._dispatch.factory import constant, factory
from ..._dispatch.public.namespaces import bound_to, written
from ..._dispatch.public.overrides import run_watched
from ..._dispatch.public.protocol import FLAGS, as_kind, explain
from ..._dispatch.public.registry import export, guard
from ..shape.view import as_shape

_PYTHON_TYPES = {float: float64, int: int64, bool: bool_, complex: complex128}


def as_dtype(value: Any, caller: str) -> DType:
    """`dtype=` as a dtype; Python's own number types stand for the widest one of their kind."""
    if isinstance(value, DType):
        return value
    found = _PYTHON_TYPES.get(value) if isinstance(value, type) else None
    if found is None:
        raise TypeError(f"{caller}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")
    return found


def chosen_kind(dtype: Any, device: Any, fallback: DType | None = None, caller: str = "tensor") -> Kind:
    """The kind that `dtype=` and `device=` ask for; None means the default."""
    if dtype is None:
        dtype = fallback or DEFAULTS.float
    elif type(dtype) is not DType:
        dtype = as_dtype(dtype, caller)
    if dtype is complex32:
        warn_of_complex_half()
    return CPU_KINDS[dtype] if device is None and default_device() is CPU else kind_of(dtype, device_for(device))


class _CpuKinds(dict[Any, Kind]):
    def __missing__(self, element: Any) -> Kind:
        return kind_of(element, CPU)


CPU_KINDS = _CpuKinds({each: kind_of(each, CPU) for each in ALL_DTYPES})


def array_of_ones(shape: tuple[int, ...], array_type: Any) -> Any:
    array = np.empty(shape, array_type)  # quicker than NumPy's `ones`
    if array_type in WIDE_TYPES:
        fill_with(array, 1)
    else:
        array.fill(1)
    return array


def unwritten_array(shape: tuple[int, ...], array_type: Any) -> Any:
    array = np.empty(shape, array_type)
    if DETERMINISM.fills:
        fill_unwritten(array)
    return array


def in_pinned_memory(tensor: Tensor, requires_grad: bool) -> Tensor:
    """A new tensor of the CPU as a leaf in page-locked memory, where there is a GPU that copies from it."""
    try:
        usable_device("cuda")
    except AssertionError:
        return tensor.requires_grad_(requires_grad)
    if not tensor._kind.is_cpu:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    array = SLOTS.pinned_copy(tensor._array)
    return Tensor._from_parts((array, tensor._kind, new_counter())).requires_grad_(requires_grad)


def _check_differentiable(kind: Kind) -> None:
    if not kind.differentiable:
        raise RuntimeError(
            f"Only Tensors of floating point and complex dtype can require gradients: this one would be {kind.dtype}"
        )


def filled(shape: tuple[int, ...], kind: Kind, value: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf filled with `value`; with whatever the memory holds if that is None."""
    if requires_grad:
        _check_differentiable(kind)
    tensor = _full(shape, value, kind)
    tensor._requires_grad = requires_grad
    return tensor


def filled_strided(
    shape: tuple[int, ...], strides: tuple[int, ...], kind: Kind, value: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new leaf with given strides, in elements, filled with `value`; not filled if that is None."""
    if requires_grad:
        _check_differentiable(kind)
    tensor = _full_strided(shape, strides, value, kind)
    tensor._requires_grad = requires_grad
    return tensor


def made(array: Any, kind: Kind, requires_grad: bool = False) -> Tensor:
    """A new leaf over `array`, which holds data from outside."""
    if requires_grad:
        _check_differentiable(kind)
    if THREAD.modes.interpreters:
        watched = constant(array, kind)
        watched._requires_grad = requires_grad
        return watched
    if not kind.is_cpu and type(array) is np.ndarray:
        array = meta_array(array) if kind.dataless else kind.backend.from_host(array)
    tensor = leaf(array, kind)
    tensor._requires_grad = requires_grad
    return tensor


def _is_without_numbers(kind: Kind) -> bool:
    """Whether a tensor of a kind has no data, and nobody writes down what would be in it."""
    return kind.dataless and not any(each.keeps_data for each in THREAD.modes.interpreters)


def computed(
    shape: tuple[int, ...], kind: Kind, numbers: Callable[[], Any], requires_grad: bool = False, out: Any = None,
    *, warns: bool = False,
) -> Tensor:  # fmt: skip
    """A new leaf over what `numbers` gives, in `out` if that was given; where nobody wants data, none is computed."""
    if _is_without_numbers(kind):
        array = empty_meta(shape, kind.dtype.numpy)
    else:
        ensure_room(shape, kind.dtype.itemsize)
        array = numbers()
        if kind.dtype.wide is not None and array.dtype is not kind.dtype.numpy:
            array = as_type(array, kind.dtype.numpy)
    tensor = made(array, kind, requires_grad)
    return tensor if out is None else delivered(tensor, out, warns=warns)


def dtype_of_out(out: Any) -> DType:
    """The dtype of what was given as `out=`, which must be a tensor."""
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    return out.dtype


def delivered(result: Tensor, out: Any, *, warns: bool = False) -> Tensor:
    """A factory's result, in `out` if that was given. Most give it another size without a word.

    A row of numbers takes the shape of an `out` that has as many elements.
    """
    if out is None:
        return result
    if result.dtype is not dtype_of_out(out):
        raise RuntimeError(
            f"dtype {LEGACY_NAMES[result.dtype]} does not match dtype of out parameter ({LEGACY_NAMES[out.dtype]})"
        )
    from ..._dispatch.changes.out import store

    if result.ndim == 1 and isinstance(out, Tensor) and out.numel() == result.numel():
        result = result.reshape(out.shape)
    if not warns:
        out.resize_(result.shape)
    return store(result, out)


def check_shape(shape: tuple[int, ...], caller: str) -> tuple[int, ...]:
    """Refuse sizes that no tensor can have."""
    if min(shape, default=0) < 0:
        raise RuntimeError(
            f"{caller}: Dimension size must be non-negative. Trying to create tensor with negative dimension "
            f"{min(shape)}: {list(shape)}"
        )
    return shape


def check_integers(shape: tuple[int, ...], caller: str) -> None:
    """Refuse sizes that are no 64-bit integers."""
    for position, size in enumerate(shape, 1):
        if not fits_int64(size):
            raise TypeError(
                f"{caller}(): argument 'size' failed to unpack the object at pos {position} with error "
                '"Overflow when unpacking long long"'
            )


_INT_ALONE = {int}


def requested_shape(sizes: tuple[Any, ...], size: Any, caller: str) -> tuple[int, ...]:
    """The shape in the arguments of a factory: `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))`."""
    if size is not None:
        sizes = (size,)
    for each in sizes:
        if type(each) is not int or each < 0:
            break
    else:
        if 0 < len(sizes) < 64:  # the usual case
            return sizes
    if not sizes:
        raise TypeError(f'{caller}() missing 1 required positional arguments: "size"')
    if isinstance(sizes[0], (tuple, list)) and len(sizes) > 1:
        raise TypeError(f"{caller}() takes 1 positional argument but {len(sizes)} were given")
    try:
        if sizes[0] is True or sizes[0] is False:
            raise TypeError
        shape = as_shape(sizes)
    except (AttributeError, TypeError):
        items = sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
        other = [each for each in items if isinstance(each, (bool, Tensor)) or not hasattr(each, "__index__")]
        wrong = other[0] if other else sizes[0]
        raise TypeError(
            f"{caller}(): argument 'size' (position 1) must be tuple of ints, not {type(wrong).__name__}"
        ) from None
    return check_shape(shape, caller)


def whole_shape(size: Any, caller: str, position: int) -> tuple[int, ...]:
    """The shape in an argument that must be a tuple or a list."""
    if type(size) is tuple and {*map(type, size)} == _INT_ALONE and min(size) >= 0 and len(size) < 64:
        return size
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"{caller}(): argument 'size' (position {position}) must be tuple of ints, not {type(size).__name__}"
        )
    return requested_shape((size,), None, caller)


def allocated(shape: tuple[int, ...], kind: Kind, value: Any = None) -> Any:
    """A new array, filled with `value`; uninitialised if that is None."""
    if kind.dataless:
        return empty_meta(shape, kind.dtype.numpy)
    make = kind.backend.empty if value is None or value else kind.backend.zeros
    try:
        if 0 in shape:  # NumPy's strides would be 0
            return empty_array(shape, contiguous_strides(shape), kind.dtype.numpy, kind.backend)
        array = make(shape, kind.dtype.numpy)
    except MemoryError as error:
        explain(error, "empty", {})
        raise
    except ValueError:
        check_integers(shape, "empty")
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}") from None
    if value:
        fill_with(array, value)
    elif value is None and DETERMINISM.fills:
        fill_unwritten(array)
    return array


@factory("full")
def _full(shape: tuple[int, ...], value: Any, kind: Kind) -> Any:
    return allocated(shape, kind, value)


@factory("full_strided")
def _full_strided(shape: tuple[int, ...], strides: tuple[int, ...], value: Any, kind: Kind) -> Any:
    memory = strided_memory(shape, strides, kind)
    if value is not None and not kind.dataless:
        fill_with(memory, value)
    return memory


def check_options(layout: Any, memory_format: Any, caller: str) -> None:
    """Refuse what the arguments that are rarely given cannot mean."""
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"{caller}: tensors here are strided; the layout {layout} is not supported")
    if memory_format is not None and not isinstance(memory_format, MemoryFormat):
        raise TypeError(
            f"{caller}(): argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}"
        )
    if memory_format is preserve_format:
        raise RuntimeError(f"unsupported memory format Preserve: {caller} has no tensor whose format it could preserve")


def _constant_factory(name: str, value: Any, quick: Any, doc: str) -> Callable[..., Tensor]:
    @bound_to("")
    def function(
        namespace: Any, /, *sizes: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        if not DIRECT_TYPES and THREAD.modes.functions:
            given = {
                "size": size, "out": out, "dtype": dtype, "layout": layout, "device": device,
                "requires_grad": requires_grad, "pin_memory": pin_memory, "memory_format": memory_format,
            }  # fmt: skip
            return run_watched(function, sizes, given)
        if memory_format is not None and name != "empty":
            raise TypeError(f"{name}() got an unexpected keyword argument 'memory_format'")
        if type(requires_grad) not in FLAGS:
            as_kind(name, "requires_grad", requires_grad)
        if pin_memory:
            given = {"size": size, "out": out, "dtype": dtype, "layout": layout, "device": device}
            return in_pinned_memory(function(*sizes, **given, memory_format=memory_format), requires_grad)
        if out is None and size is None and layout is None and memory_format is None and sizes:
            kind = chosen_kind(dtype, device, None, name)
            if kind.is_cpu and kind in THREAD.modes.direct:
                try:
                    first = sizes[0]
                    shape = first if len(sizes) == 1 and isinstance(first, tuple) else sizes
                    if first.__class__ is not bool and 0 not in shape:
                        array = quick(shape, kind.dtype.numpy)
                        return made(array, kind, requires_grad) if requires_grad else leaf(array, kind)
                except (TypeError, ValueError, MemoryError, RuntimeError):
                    pass  # the long way says what is wrong
        shape = requested_shape(sizes, size, name)
        check_options(layout, memory_format, name)
        kind = chosen_kind(dtype if dtype is not None or out is None else dtype_of_out(out), device, None, name)
        if memory_format is None or memory_format is contiguous_format:
            return delivered(filled(shape, kind, value, requires_grad), out)
        strides = channels_last_strides(shape, memory_format)
        return delivered(filled_strided(shape, strides, kind, value, requires_grad), out)

    own = written(function)
    own.__name__ = own.__qualname__ = name
    own.__doc__ = doc
    export(function, name)
    return function


zeros = _constant_factory("zeros", 0, np.zeros, "A tensor of the given size filled with zeros.")
ones = _constant_factory("ones", 1, array_of_ones, "A tensor of the given size filled with ones.")
empty = _constant_factory("empty", None, unwritten_array, "A tensor of the given size with whatever the memory holds.")


def strided_memory(shape: tuple[int, ...], strides: tuple[int, ...], kind: Kind) -> Any:
    """Uninitialised memory with given strides in elements, on the device of `kind`."""
    array_type = kind.dtype.numpy
    if kind.dataless:
        return empty_meta(shape, array_type, tuple([step * array_type.itemsize for step in strides]))
    array = empty_array(shape, strides, array_type, kind.backend)
    if DETERMINISM.fills:
        fill_unwritten(array)
    return array


def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uninitialised memory seen with the given strides."""
    kind = chosen_kind(dtype, device, None, "empty_strided")
    return filled_strided(*checked_strides(size, stride), kind, None, requires_grad)


def checked_strides(size: Any, stride: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides as tuples that belong together."""
    shape, strides = check_shape(as_shape((size,)), "empty_strided"), as_shape((stride,))
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    if min(strides, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}: "
            "strides must not be negative"
        )
    return shape, strides


def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Uninitialised dense memory whose dimensions lie in the order `physical_layout`, the outermost first."""
    shape, order = check_shape(as_shape((size,)), "empty_permuted"), as_shape((physical_layout,))
    if len(shape) != len(order):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if any(not 0 <= dim < len(shape) for dim in order):
        raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(shape) - 1}): {list(order)}")
    if len(set(order)) != len(order):
        raise RuntimeError(f"Duplicate dim not allowed: {list(order)}")
    kind = chosen_kind(dtype, device, None, "empty_permuted")
    return filled_strided(shape, ordered_strides(shape, order), kind, None, requires_grad)


def fill_number(value: Any, caller: str) -> Any:
    """`fill_value` as a number; a 0-d tensor stands for its element."""
    if isinstance(value, Tensor) and value._array.ndim == 0:
        return value.item()
    if not is_number(value):
        raise TypeError(f"{caller}(): argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")
    return value


def full(
    size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of the given size filled with one value, which also decides the dtype if none is given."""
    shape = whole_shape(size, "full", 1)
    if layout is not None:
        check_options(layout, None, "full")
    number = fill_value if type(fill_value) is float else fill_number(fill_value, "full")
    if dtype is None and (out is not None or type(fill_value) is not float):
        dtype = dtype_of_out(out) if out is not None else _dtype_of_number(fill_value, number)
    kind = chosen_kind(dtype, device, None, "full")  # without a dtype the default one, as for a float
    if pin_memory and out is None:
        return in_pinned_memory(filled(shape, kind, fitting(number, kind.dtype)), requires_grad)
    if out is None:
        return filled(shape, kind, fitting(number, kind.dtype), requires_grad)
    return delivered(filled(shape, kind, fitting(number, kind.dtype), requires_grad), out)


def _dtype_of_number(given: Any, number: Any) -> DType:
    return given.dtype if isinstance(given, Tensor) else default_of_category(scalar_category(number))


@bound_to("")
def scalar_tensor(
    namespace: Any, /, s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A 0-d tensor of the default dtype."""
    if THREAD.modes.functions:
        given = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
        return run_watched(scalar_tensor, (s,), given)
    if type(requires_grad) not in FLAGS:
        as_kind("scalar_tensor", "requires_grad", requires_grad)
    number = fill_number(s, "scalar_tensor")
    kind = chosen_kind(dtype, device, None, "scalar_tensor")
    return filled((), kind, element(number, kind.dtype), requires_grad)


def eye(
    n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A matrix with ones on the diagonal and zeros elsewhere."""
    n = whole(n, "eye", "n", 1)
    columns = n if m is None else whole(m, "eye", "m", 2)
    for name, value in (("n", n), ("m", columns)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    kind = chosen_kind(dtype if dtype is not None or out is None else dtype_of_out(out), device, None, "eye")
    if kind.dataless and not _is_without_numbers(kind):
        array = np.eye(n, columns, dtype=kind.dtype.numpy)
    else:
        array = allocated((n, columns), kind, 0)
        if not kind.dataless:
            np.fill_diagonal(array, number_as(1, array.dtype))
    return delivered(made(array, kind, requires_grad), out)


export(guard(empty_strided), "empty_strided")
export(guard(empty_permuted), "empty_permuted")
export(guard(full), "full")
export(scalar_tensor, "scalar_tensor")
export(guard(eye), "eye")


@bound_to("")
def tensor(
    namespace: Any, /, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A new tensor with a copy of `data`: numbers, nested sequences, arrays."""
    if not DIRECT_TYPES and THREAD.modes.functions:
        given = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "pin_memory": pin_memory}
        return run_watched(tensor, (data,), given)
    if type(requires_grad) not in FLAGS:
        as_kind("tensor", "requires_grad", requires_grad)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        if data._kind.dataless and device is None:
            device = data._kind.device
        data = to_host(content(data))
    array_type = None if dtype is None else as_dtype(dtype, "tensor").numpy
    try:
        array = array_from_data(data, array_type, DEFAULTS.float.numpy)
    except Exception as error:
        leave_out_library(error)
        raise
    kind = kind_of_array(array.dtype, device_for(device))
    if kind.dtype is complex32:
        warn_of_complex_half()
    if array.size == 0 and (array.ndim != 1 or not kind.is_cpu):  # else NumPy's strides are PyTorch's, too
        array = allocated(array.shape, kind)
    return in_pinned_memory(made(array, kind), requires_grad) if pin_memory else made(array, kind, requires_grad)


@bound_to("")
def from_numpy(namespace: Any, array: Any, /) -> Tensor:
    """A tensor that shares the array's memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if type(array) is not np.ndarray:
        array = array.view(np.ndarray)
    kind = kind_of_array(array.dtype, CPU)
    for step in array.strides:
        if step < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                "currently supported. (You can probably work around this by making a copy of your array with "
                "array.copy().)"
            )
        if step % array.itemsize:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate "
                "the memory."
            )
    if not array.flags.writeable:
        warn_user_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors: writing to the "
            "tensor would write to the array all the same, or fail. Copy the array if the tensor is to be changed."
        )
    return made(adopt_array(array), kind)


export(tensor, "tensor")
export(from_numpy, "from_numpy")


def legacy_tensor(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`Tensor(...)`: see `legacy.py`."""
    from ..tensor.legacy import construct

    return construct(cls, *args, **kwargs)
