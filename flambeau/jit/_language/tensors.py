"""Operators on tensors whose arguments differ from those of the package's functions of the same name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._core.tensor import Tensor
from .layers import LAYERS
from .numbers_of import number_of_dtype, words
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


def _cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: Any = None) -> Any:
    modes = {None: "use_mm_for_euclid_dist_if_necessary", 0: "use_mm_for_euclid_dist_if_necessary",
             1: "use_mm_for_euclid_dist", 2: "donot_use_mm_for_euclid_dist"}  # fmt: skip
    return _torch().cdist(x1, x2, p, modes[compute_mode])


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
    "_index_put_impl_": lambda *args: _torch().ops.aten.index_put_(*args[:4]),
    "set_grad_enabled": _set_grad_enabled,
    "is_grad_enabled": lambda: _torch().is_grad_enabled(),
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
    "nonzero_numpy": lambda value: list(_torch().nonzero(value, as_tuple=True)),
    "get_autocast_dtype": lambda place: number_of_dtype(_torch().get_autocast_dtype(place)),
    "is_autocast_enabled": lambda *place: _torch().is_autocast_enabled(*place),
    "is_autocast_cpu_enabled": lambda: _torch().is_autocast_cpu_enabled(),
    "_add_relu": lambda a, b, *, alpha=1: _torch().add(a, b, alpha=alpha).relu(),
    "matrix_H": lambda value: value.mH,
    "_unique": lambda value, ordered=True, inverse=False: _unique(value, ordered, inverse, False)[:2],
    "unique_dim": _unique_dim,
    "dim": Tensor.dim,
    "unfold": lambda value, *args: value.unfold(*args),
    "cdist": _cdist,
    "copy": lambda value, source, non_blocking=False: source.to(value.dtype).expand_as(value).clone(),
    "chain_matmul": lambda values: _torch().chain_matmul(*values),
    "tensordot": lambda a, b, left, right: _torch().tensordot(a, b, (left, right)),
    "len": len,
    "__lshift__": lambda a, b: a << b,
    "__rshift__": lambda a, b: a >> b,
    "numpy_T": lambda value: value.T,
    **LAYERS,
}
"""By the operator's name without `aten::`."""
