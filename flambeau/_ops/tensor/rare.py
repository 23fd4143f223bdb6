"""Methods that few programs use: element by element through Python, and questions about memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..._core.dtype import LEGACY_NAMES, NAMES, get_default_dtype
from ..._core.process.caller import warn_user
from ..._core.storage import UntypedStorage
from ..._core.tensor import Tensor
from ..._dispatch.changes.inplace import check_writable
from ..._dispatch.public.registry import export_method, public
from ..create.constants import empty
from ..create.constants import tensor as make_tensor
from ..reduce.softmax import softmax
from ..reduce.sort import unique


def _check_plain(name: str, *tensors: Tensor) -> None:
    if any(each.requires_grad for each in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _fill(input: Tensor, values: list[Any]) -> Tensor:
    check_writable(input)
    input.copy_(make_tensor(values, dtype=input.dtype).reshape(input.shape))
    return input


@public(function=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it. Slow: each call is one element."""
    _check_plain("apply_", input)
    return _fill(input, [callable(each) for each in input.reshape(-1).tolist()])


@public(function=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of another tensor's."""
    _check_plain("map_", input, tensor)
    other = tensor.expand(input.shape).reshape(-1).tolist()
    return _fill(input, list(map(callable, input.reshape(-1).tolist(), other)))


@public(function=False)
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of two other tensors'."""
    _check_plain("map2_", input, x, y)
    others = [each.expand(input.shape).reshape(-1).tolist() for each in (x, y)]
    return _fill(input, list(map(callable, input.reshape(-1).tolist(), *others)))


@public(function=False)
def dim_order(input: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions in the order in which memory runs through them, the slowest first."""
    strides = input.stride()
    return tuple(sorted(range(input.dim()), key=lambda each: (-strides[each], each)))


@public(function=False)
def const_data_ptr(input: Tensor) -> int:
    """The address of the first element."""
    return input.data_ptr()


@public()
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes: never."""
    return False


@public(function=False)
def module_load(input: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in the place of this tensor when it swaps parameters."""
    return other if assign else input.copy_(other).detach()


@public(function=False)
def record_stream(input: Tensor, s: Any) -> None:
    """Say that a queue of an accelerator uses this memory, which is not to be used again before that is done."""
    input._kind.backend.used_by(input._array, s)


def _warn_of_resize(name: str) -> None:
    import warnings

    warnings.warn(f"non-inplace {name} is deprecated", UserWarning, stacklevel=4)


@public(function=False)
def resize(input: Tensor, *sizes: Any) -> Tensor:
    """The elements in another shape with as many: the older form of `view`."""
    _warn_of_resize("resize")
    return input.reshape(*sizes)


@public(function=False)
def resize_as(input: Tensor, tensor: Tensor) -> Tensor:
    """The elements in the shape of another tensor with as many."""
    _warn_of_resize("resize_as")
    return input.reshape(tensor.shape)


@public(function=False)
def storage_type(input: Tensor) -> Any:
    """The class of storages of this dtype."""
    from ..._core.names.legacy_storages import CLASSES

    return CLASSES[f"{LEGACY_NAMES[input.dtype]}Storage"]


def _warn_of_norm(name: str, better: str) -> None:
    warn_user(f"at::{name} is deprecated and it is just left for programs that have it. Please use `{better}` instead.")


@public()
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor of which `input` is a slice, when `src` had its shape."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


@public(out=True)
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares, along dimensions or of all elements."""
    from ..reduce.norm import norm

    _warn_of_norm("frobenius_norm", "linalg.vector_norm(A, 2., dim, keepdim)")

    return norm(input, "fro", dim or None, keepdim)


@public(out=True)
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices."""
    from ..reduce.norm import norm

    _warn_of_norm("nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)")
    if isinstance(dim, bool):  # the form without dimensions
        dim, keepdim = None, dim
    return norm(input, "nuc", dim, keepdim)


def _name(input: Tensor) -> None:
    """The name of a tensor: none has one."""


def _grad_dtype(input: Tensor) -> Any:
    """The dtype that the gradient of a leaf has."""
    return input.dtype if input.is_leaf else None


export_method(property(_name), "name")
export_method(property(_grad_dtype), "grad_dtype")


def _removed(name: str) -> Callable[..., NoReturn]:
    def removed(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. `Tensor.{name}` has a successor in "
            "`torch.linalg`."
        )

    removed.__name__ = name
    removed.__doc__ = "Removed from PyTorch: `torch.linalg` has its successor."
    return removed


for _each in ("eig", "lstsq", "solve", "symeig"):
    export_method(_removed(_each), _each)


def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """Removed from PyTorch: `torch.distributions` has its successor."""
    raise RuntimeError("reinforce() was removed. Use torch.distributions instead.")


export_method(reinforce, "reinforce")


def _elsewhere(name: str, error: type[Exception], message: str) -> Callable[..., NoReturn]:
    def unavailable(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise error(message)

    unavailable.__name__ = name
    unavailable.__doc__ = f"Always raises, as on a computer without such devices: {message}."
    return unavailable


export_method(_elsewhere("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices"), "ipu")
export_method(_elsewhere("xpu", AssertionError, "Torch not compiled with XPU enabled"), "xpu")
export_method(_elsewhere("mtia", AssertionError, "Torch not compiled with MTIA enabled"), "mtia")
_NO_KERNEL = "Could not run 'aten::{}' with arguments from the 'CPU' backend: {}"
export_method(
    _elsewhere(
        "to_padded_tensor", NotImplementedError, _NO_KERNEL.format("to_padded_tensor", "the tensor is not nested")
    ),
    "to_padded_tensor",
)


@public(method=False)
def _lazy_clone(input: Tensor) -> Tensor:
    """A copy. PyTorch makes it when one of the two is changed; the results are the same."""
    return input.clone()


export_method(_lazy_clone, "_lazy_clone")


@public(method=False)
def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax`; with `half_to_float`, on a device that has it, in float32."""
    if half_to_float and input.device.type == "cpu":
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    return softmax(input, dim, NAMES["float32"] if half_to_float else None)


@public(method=False)
def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """The unique elements, where each element is among them, and how often each is there; the last two may be empty."""
    values, inverse, counts = unique(input, sorted, True, True)
    empty = counts.new_empty(0)
    return values, inverse if return_inverse else empty, counts if return_counts else empty


@public(method=False)
def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """The mean and variance of each channel of a batch; running ones, where given, move towards them."""
    others = [dim for dim in range(input.dim()) if dim != 1]
    mean, var = input.mean(others), input.var(others, correction=0)
    count = input.numel() // input.size(1)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean.detach(), alpha=momentum)
    if running_var is not None:
        unbiased = var.detach() * (count / (count - 1))
        running_var.mul_(1 - momentum).add_(unbiased, alpha=momentum)
    return mean, var


@public(method=False)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor on the memory of a file; with `shared`, what is written to it goes to the file."""
    element = get_default_dtype() if dtype is None else dtype
    number = 0 if size is None else size
    storage = UntypedStorage.from_file(filename, bool(shared), number * element.itemsize)
    return empty(0, dtype=element, device="cpu").set_(storage, 0, (number,), (1,)).requires_grad_(requires_grad)
