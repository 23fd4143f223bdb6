"""Operators on tensors whose arguments differ from those of the package's functions of the same name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.device import device
from ..._core.tensor import Tensor
from .layers import LAYERS
from .numbers_of import dtype_of_number, memory_format_of_number, number_of_dtype, words
from .prims import PRIMS

LISTS = frozenset(
    words(
        "split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit meshgrid broadcast_tensors unsafe_split "
        "unsafe_chunk unsafe_split_with_sizes nonzero_numpy size stride sizes align_tensors"
    )
)
"""Operators whose results are lists in the language."""


@functools.cache
def _torch() -> Any:
    import flambeau

    return flambeau


def _size(value: Tensor, dim: int | None = None) -> Any:
    return list(value.shape) if dim is None else value.shape[dim]


def _stride(value: Tensor, dim: int | None = None) -> Any:
    return list(value.stride()) if dim is None else value.stride(dim)


def _to(value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The five forms of `to`: by another tensor, a dtype, a device, both, or by name."""
    from .calls import by_name

    first = args[0] if args else None
    if isinstance(first, Tensor):
        names: tuple[str, ...] = ("other", "non_blocking", "copy", "memory_format")
    elif isinstance(first, device) or (len(args) > 1 and type(args[1]) is int):
        names = ("device", "dtype", "non_blocking", "copy", "memory_format")
    elif args and type(args[-1]) is bool and len(args) == 3 and first is None:
        names = ("device", "non_blocking", "copy")
    else:
        names = ("dtype", "non_blocking", "copy", "memory_format")
        if first is None and len(args) >= 2 and type(args[1]) is not bool:
            names = ("device", "dtype", "non_blocking", "copy", "memory_format")
    given = by_name({**dict(zip(names, args, strict=False)), **kwargs})
    for unused in ("pin_memory", "layout"):
        given.pop(unused, None)
    other = given.pop("other", None)
    return value.to(other, **given) if other is not None else value.to(**given)


def _tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    if isinstance(data, Tensor):
        made = data.detach().clone()
        return made if dtype is None else made.to(dtype_of_number(dtype))
    wanted = None if dtype is None else dtype_of_number(dtype)
    return _torch().tensor(data, dtype=wanted, device=device, requires_grad=requires_grad)


def _as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return _torch().as_tensor(data, dtype=None if dtype is None else dtype_of_number(dtype), device=device)


def _index_put(in_place: bool) -> Callable[..., Any]:
    def put(value: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False, *_: Any) -> Any:
        target = value if in_place else value.clone()
        places = tuple([slice(None) if each is None else each for each in indices])
        if not accumulate:
            target[places] = values
            return target
        if all(each is not None for each in indices):
            return target.index_put_(tuple(indices), values, accumulate=True)
        rows = [
            _torch().arange(extent, device=value.device) if each is None else each
            for each, extent in zip(indices, value.shape, strict=False)
        ]
        return target.index_put_(tuple(_torch().meshgrid(*rows, indexing="ij")), values, accumulate=True)

    return put


def _expand(value: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return value.expand(size)


def _is_contiguous(value: Tensor, *, memory_format: Any = 0) -> bool:
    return value.is_contiguous(memory_format=memory_format_of_number(memory_format))


def _cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: Any = None) -> Any:
    modes = {None: "use_mm_for_euclid_dist_if_necessary", 0: "use_mm_for_euclid_dist_if_necessary",
             1: "use_mm_for_euclid_dist", 2: "donot_use_mm_for_euclid_dist"}  # fmt: skip
    return _torch().cdist(x1, x2, p, modes[compute_mode])


def _norm(value: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    wanted = dtype if not isinstance(dtype, int) else dtype_of_number(dtype)
    return _torch().norm(value, 2 if p is None else p, dim, keepdim, dtype=wanted)


def _where(condition: Tensor, *args: Any) -> Any:
    return _torch().where(condition, *args) if args else list(_torch().where(condition))


def _set_grad_enabled(mode: bool) -> None:
    _torch().set_grad_enabled(mode)


def _wait(future: Any) -> Any:
    return future.wait()


def _old_div(a: Any, b: Any) -> Any:
    """Before version 4 of the format a quotient of integers was one."""
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return a / b
    kinds = [each.dtype if isinstance(each, Tensor) else type(each) for each in (a, b)]
    whole = [
        kind is int or (kind is not float and not kind.is_floating_point and not kind.is_complex) for kind in kinds
    ]
    return _torch().div(a, b, rounding_mode="trunc" if all(whole) else None)


def _old_full(size: Any, value: Any, **kwargs: Any) -> Any:
    """Before version 5 of the format, `full` of an integer had the default dtype."""
    from .calls import by_name

    given = by_name(kwargs)
    given.setdefault("dtype", _torch().get_default_dtype())
    given.pop("pin_memory", None)
    return _torch().full(size, value, **given)


def _without_grad(method: Callable[..., Any], *args: Any) -> Any:
    with _torch().no_grad():
        return method(*args)


_METHODS = words(
    "dim __iand__ __ilshift__ __ior__ __irshift__ __ixor__ cpu element_size requires_grad_ retain_grad storage_offset "
    "output_nr"
)


def _method(name: str) -> Callable[..., Any]:
    """A method under its own name; it may be an attribute in Python."""

    def call(value: Tensor, *args: Any) -> Any:
        found = getattr(value, name)
        return found(*args) if callable(found) else found

    return call


def _at_least(dimensions: int) -> Callable[..., Any]:
    def call(value: Any) -> Any:
        function = getattr(_torch(), f"atleast_{dimensions}d")
        return list(function(*value)) if isinstance(value, list) else function(value)

    return call


def _meshgrid(values: Any, *, indexing: str = "ij") -> list[Tensor]:
    return list(_torch().meshgrid(*values, indexing=indexing))


def _unique(value: Tensor, ordered: bool, inverse: bool, counts: bool) -> Any:
    empty = _torch().empty(0, dtype=_torch().int64)
    found = _torch().unique(value, ordered, True, True)
    return found[0], found[1] if inverse else empty, found[2] if counts else empty


def _unique_dim(value: Tensor, dim: int, ordered: bool = True, inverse: bool = False, counts: bool = False) -> Any:
    return tuple(_torch().unique(value, ordered, True, True, dim))


OLDER: dict[str, tuple[int, Callable[..., Any]]] = {"div": (3, _old_div), "full": (4, _old_full)}
"""Operators that meant something else up to a version of the format."""

ADAPTED: dict[str, Callable[..., Any]] = {
    "size": _size,
    "sym_size": _size,
    "sizes": _size,
    "stride": _stride,
    "to": _to,
    "tensor": _tensor,
    "as_tensor": _as_tensor,
    "index_put": _index_put(False),
    "index_put_": _index_put(True),
    "_index_put_impl_": _index_put(True),
    "unfold": lambda value, *args: value.unfold(*args),
    "cdist": _cdist,
    "norm": _norm,
    "where": _where,
    "expand": _expand,
    "is_contiguous": _is_contiguous,
    "set_grad_enabled": _set_grad_enabled,
    "is_grad_enabled": lambda: _torch().is_grad_enabled(),
    "floordiv": lambda value, other: _torch().floor_divide(value, other),
    "wait": _wait,
    "Int": lambda value: int(value.item()),
    "Float": lambda value: float(value.item()),
    "Bool": lambda value: bool(value.item()),
    "IntImplicit": lambda value: int(value.item()),
    "FloatImplicit": lambda value: float(value.item()),
    "ComplexImplicit": lambda value: complex(value.item()),
    "ScalarImplicit": lambda value: value.item(),
    "_shape_as_tensor": lambda value: _torch().tensor(list(value.shape)),
    "_reshape_alias": lambda value, size, stride: value.as_strided(size, stride),
    "_tensor_to_list": lambda value: value.tolist(),
    "_list_to_tensor": lambda values: _torch().tensor(values, dtype=_torch().int32),
    "_no_grad_fill_": lambda value, number: _without_grad(value.fill_, number),
    "_no_grad_zero_": lambda value: _without_grad(value.zero_),
    "_no_grad_uniform_": lambda value, low, high, *_: _without_grad(value.uniform_, low, high),
    "_no_grad_normal_": lambda value, mean, std, *_: _without_grad(value.normal_, mean, std),
    "_unwrap_optional": PRIMS["unchecked_unwrap_optional"],
    "_get_tracing_state": lambda: False,
    "is_scripting": lambda: True,
    "manual_seed": lambda seed: _torch().manual_seed(seed),
    "broadcast_tensors": lambda values: list(_torch().broadcast_tensors(*values)),
    "meshgrid": _meshgrid,
    "broadcast_shapes": lambda *shapes: list(_torch().broadcast_shapes(*shapes)),
    "split": lambda value, sizes, dim=0: list(value.split(sizes, dim)),
    "copy": lambda value, source, non_blocking=False: source.to(value.dtype).expand_as(value).clone(),
    "block_diag": lambda values: _torch().block_diag(*values),
    "cartesian_prod": lambda values: _torch().cartesian_prod(*values),
    "chain_matmul": lambda values: _torch().chain_matmul(*values),
    "einsum": lambda equation, values, *, path=None: _torch().einsum(equation, values),
    "tensordot": lambda a, b, left, right: _torch().tensordot(a, b, (left, right)),
    "nonzero_numpy": lambda value: list(_torch().nonzero(value, as_tuple=True)),
    "get_autocast_dtype": lambda place: number_of_dtype(_torch().get_autocast_dtype(place)),
    "is_autocast_enabled": lambda *place: _torch().is_autocast_enabled(*place),
    "is_autocast_cpu_enabled": lambda: _torch().is_autocast_cpu_enabled(),
    "_add_relu": lambda a, b, *, alpha=1: _torch().add(a, b, alpha=alpha).relu(),
    "matrix_H": lambda value: value.mH,
    "_unique": lambda value, ordered=True, inverse=False: _unique(value, ordered, inverse, False)[:2],
    "unique_dim": _unique_dim,
    **{f"atleast_{n}d": _at_least(n) for n in (1, 2, 3)},
    **{name: _method(name) for name in _METHODS},
    "len": len,
    "__and__": lambda a, b: a & b,
    "__or__": lambda a, b: a | b,
    "__xor__": lambda a, b: a ^ b,
    "__lshift__": lambda a, b: a << b,
    "__rshift__": lambda a, b: a >> b,
    "numpy_T": lambda value: value.T,
    **LAYERS,
}
"""By the operator's name without `aten::`."""
