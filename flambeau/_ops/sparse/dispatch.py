"""Ops on sparse tensors: which there are, and how they run.

A sparse tensor's class is not a plain one, so a public function that meets such a tensor comes here, by way of
`__torch_function__`. `IMPLEMENTATIONS` has what runs for the functions that dense tensors have too; functions about
sparse tensors themselves say by `about_sparse` that their own body knows what to do. Everything else is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..._core.arrays.sparse import COO, SparseArray
from ..._core.device import CPU
from ..._core.dtype import HAS_ML_DTYPES
from ..._core.process.reproducibility import REPRODUCIBILITY
from ..._core.sparse import SparseTensor, on_device_of, sparse_tensor
from ..._core.tensor import Tensor
from ..._dispatch.changes.history import end_change
from ..._dispatch.dispatch import Primitive, fresh
from ..._dispatch.op import Formula, Kernel, name_of_kernel
from ..._dispatch.public.overrides import original_of
from ..._dispatch.public.protocol import explain
from ..._dispatch.public.registry import load_family

Function = TypeVar("Function", bound=Callable[..., Any])

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}
"""By the public name of a function, its namespace included: what runs if a sparse tensor is among the arguments."""

_BODIES: set[Callable[..., Any]] = set()
"""The bodies of public functions that take sparse tensors as they are."""

_IMPLEMENTING = ("sparse.legacy", "sparse.math", "sparse.matmul", "sparse.move", "sparse.reduce")
"""The files whose import fills `IMPLEMENTATIONS`."""

_SAME_FOR_ALL = frozenset(
    (
        *("is_complex", "is_conj", "is_floating_point", "is_neg", "is_same_size", "is_signed", "is_tensor", "numel"),
        *("requires_grad_", "type"),
    )
)
"""Public functions that look at no element."""


def implements(*names: str) -> Callable[[Function], Function]:
    """The decorated function is what runs for the public functions `names` if an argument is sparse."""

    def decorate(function: Function) -> Function:
        IMPLEMENTATIONS.update(dict.fromkeys(names, function))
        return function

    return decorate


def about_sparse(body: Function) -> Function:
    """The decorated body of a public function takes sparse tensors itself."""
    _BODIES.add(body)
    return body


def run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a public function with a sparse tensor among its arguments, or refuse it."""
    try:
        return _run(function, args, kwargs)
    except MemoryError as error:
        explain(error, public_name(function), {})
        raise


def _run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = original_of(function)
    body = getattr(function, "__wrapped__", None)
    if body in _BODIES:
        return _with_out(body, args, kwargs)
    _load_implementations()
    name = public_name(function)
    found = IMPLEMENTATIONS.get(name)
    if found is not None:
        return _with_out(found, args, kwargs)
    if name in _SAME_FOR_ALL:
        return (body or function)(*args, **kwargs)
    raise NotImplementedError(_refusal(name, args, kwargs))


@functools.cache
def _load_implementations() -> None:
    for family in _IMPLEMENTING:
        load_family(family)


def public_name(function: Any) -> str:
    """The name under which users find a function: "add", "linalg.norm"."""
    space = function.__module__.partition(".")[2]  # of the package, which may stand in for torch
    name = function.__name__.removeprefix(f"{space}_")
    return name if not space or space.startswith("_") else f"{space}.{name}"


def _with_out(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    out = kwargs.get("out")
    if "out" in kwargs:
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    result = function(*args, **kwargs)
    if out is None:
        return result
    if not isinstance(out, Tensor) or isinstance(result, tuple):
        raise NotImplementedError(f"out= of {function.__name__}() with sparse tensors: it takes one tensor")
    if isinstance(result, SparseTensor):
        if not isinstance(out, SparseTensor) or out.layout is not result.layout:
            raise RuntimeError(f"Expected out tensor to have layout {result.layout}, but it has {out.layout}")
        if out.dtype is not result.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
        out._array.take(result._array)
        end_change(out)
        return out
    from ..._dispatch.changes.out import store

    return store(result, out, tuple(each for each in args if isinstance(each, Tensor)))


def _refusal(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    found = [
        each for value in (*args, *kwargs.values()) for each in (value if type(value) in (list, tuple) else (value,))
    ]
    first = next((each for each in found if isinstance(each, SparseTensor)), None)
    backend = "Sparse" if first is None or first.layout is COO else "SparseCsr"  # PyTorch's, of all such layouts
    place = "CPU" if first is None or first.device is CPU else first.device.type.upper()
    shape = "" if first is None else f" of shape {list(first.shape)}"
    return (
        f"Could not run 'aten::{name}' with arguments from the '{backend}{place}' backend: {name} is not implemented "
        f"for a sparse tensor{shape}. Convert it first, with .to_dense(), if its elements fit in memory"
    )


class SparsePrimitive(Primitive[..., Tensor]):
    """A primitive whose kernel takes or makes sparse arrays; see `dispatch.primitive`."""

    def _run_indirectly(self, arrays: list[Any], place: Any) -> Any:
        if not HAS_ML_DTYPES and not place.dataless:
            raise NotImplementedError(
                f"{self.name}: sparse tensors of bfloat16, complex32 and the 8-bit floats need the package ml-dtypes, "
                "which is not installed. Convert the tensor first, for example with .float()"
            )
        return REPRODUCIBILITY.kernel_of(self)(*arrays)

    def _wrap(self, array: Any, source: Tensor, modes: Any, many: bool) -> Tensor:
        if isinstance(array, SparseArray):
            return sparse_tensor(array, source._kind.device)
        return fresh(on_device_of(array, source), source)


def sparse_primitive(node: str | None, **formulas: Formula) -> Callable[[Kernel], SparsePrimitive]:
    """Make the decorated kernel a primitive of sparse arrays that records nodes called `node`.

    The arrays of places and values are those of the tensor's device.
    """

    def make(kernel: Kernel) -> SparsePrimitive:
        return SparsePrimitive(kernel, node, formulas, None, False, name=f"sparse_{name_of_kernel(kernel)}")

    return make
