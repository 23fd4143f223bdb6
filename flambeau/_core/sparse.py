"""Sparse tensors: the class of tensors that hold a `SparseArray` in the place of an array.

It is no plain class, so every op hands it over to its `__torch_function__`, which is where the ops that sparse tensors
have are found. Dense tensors meet none of this.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

import numpy as np

from .arrays.sparse import BSC, BSR, COMPRESSED, COO, CSC, CSR, CooArray, SparseArray, to_dense_array
from .backend import backend_at
from .device import LAYOUTS, device, layout
from .dtype import LEGACY_NAMES, dtype, from_numpy_dtype
from .kind import Kind, kind_of_array
from .slots import SLOTS
from .tensor import Parts, Tensor, new_counter
from .version import Counter

LAYOUT_NAMES = {
    LAYOUTS["strided"]: "Strided",
    COO: "Sparse",
    CSR: "SparseCsr",
    CSC: "SparseCsc",
    BSR: "SparseBsr",
    BSC: "SparseBsc",
}
"""The names of layouts in PyTorch's messages."""


class SparseKind(Kind):
    """A dtype on a device in a sparse layout; no op has a kernel for it, and no dense tensor the same."""

    __slots__ = ("layout",)

    def __init__(self, dtype: dtype, device: device, layout: layout) -> None:
        super().__init__(dtype, device)
        self.layout = layout
        self.is_cpu = False  # what writes to the array at once must not
        self.indirect = True

    @property
    def legacy_name(self) -> str:
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        prefix = "sparse" if self.layout is COO else str(self.layout).rpartition(".")[2]
        return f"torch.{place}{prefix}.{LEGACY_NAMES[self.dtype]}Tensor"

    @staticmethod
    def tensor_from_parts(parts: Parts) -> Tensor:
        return sparse_from_parts(parts)


_KINDS: dict[tuple[dtype, device, layout], SparseKind] = {}


def sparse_kind_of(dtype: dtype, device: device, layout: layout) -> SparseKind:
    """The one kind of `dtype` on `device` in `layout`."""
    found = _KINDS.get((dtype, device, layout))
    if found is None:
        found = _KINDS.setdefault((dtype, device, layout), SparseKind(dtype, device, layout))
    return found


class SparseTensor(Tensor):
    """A tensor that keeps only the elements that it names; the others are zero."""

    __slots__ = ()
    __module__ = "flambeau"
    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not
    _is_plain_to_users = True
    _array: Any

    @classmethod
    def __torch_function__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return SLOTS.run_on_sparse(func, args, kwargs or {})

    @property
    def layout(self) -> layout:
        own: layout = self._array.layout
        return own

    @property
    def is_sparse(self) -> bool:
        return self._array.layout is COO

    @property
    def is_sparse_csr(self) -> bool:
        return self._array.layout is CSR

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there are no strides."""
        strides = (0,) * len(self._array.shape)
        return strides if dim is None else strides[dim]

    @property
    def nbytes(self) -> int:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values."
        )

    def data_ptr(self) -> int:
        """An error: the elements are in several arrays."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: it is sparse")

    def untyped_storage(self) -> NoReturn:
        """An error: the elements are in several arrays."""
        raise NotImplementedError(
            "Cannot access storage of SparseTensorImpl: a sparse tensor has those of its indices and its values"
        )

    def storage_offset(self) -> int:
        """An error, as for the storage."""
        self.untyped_storage()

    def tolist(self) -> NoReturn:
        """An error: convert the tensor first."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: use .to_dense().tolist()")

    def item(self) -> Any:
        """The one element as a Python number."""
        return dense_tensor(to_dense_array(self._array), self).item() if self._array.size == 1 else super().item()

    def __pow__(self, exponent: Any) -> Any:
        method: Any = self.pow  # the operator of dense tensors looks at the array first
        return method(exponent)

    @property
    def T(self) -> Any:
        method: Any = self.t
        return method()

    # mypy takes the options of special methods for positional
    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        from .text.sparse_printing import sparse_repr

        return sparse_repr(self)

    def __len__(self) -> int:
        if not self._array.shape:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                    "moment. Use .detach().clone() for a copy outside the graph."
                )
            made = sparse_from_parts((self._array.copy(), self._kind, new_counter()))
            made._requires_grad = self._requires_grad
            if self._grad is not None:
                made._grad = copy.deepcopy(self._grad, memo)
            memo[id(self)] = made
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any = 2) -> tuple[Any, ...]:
        tensors = tuple(dense_tensor(each, self) for each in self._array.parts())
        options = (self._array.coalesced,) if self._array.layout is COO else ()
        return rebuild_sparse, (self.layout, (*tensors, tuple(self.shape), *options), self.requires_grad)


def rebuild_sparse(layout: layout, parts: tuple[Any, ...], requires_grad: bool = False) -> SparseTensor:
    """A leaf from the tensors of its places and values, its shape and, in layout COO, whether it is coalesced."""
    array: SparseArray
    if layout is COO:
        indices, values, shape, coalesced = parts
        array = CooArray(indices._array, values._array, shape, coalesced)
    else:
        compressed, plain, values, shape = parts
        array = COMPRESSED[layout](compressed._array, plain._array, values._array, shape)
    made = sparse_tensor(array, values.device)
    made._requires_grad = requires_grad
    return made


def sparse_from_parts(parts: Parts) -> SparseTensor:
    """A sparse tensor outside any graph, over a given array, kind and version counter."""
    made: Any = Tensor._from_parts(parts, SparseTensor)
    tensor: SparseTensor = made
    return tensor


def sparse_tensor(array: SparseArray, place: device) -> SparseTensor:
    """A new sparse tensor outside any graph; its arrays are brought to `place` where they are elsewhere."""
    array = array.moved(backend_at(place))
    kind = sparse_kind_of(from_numpy_dtype(array.dtype), place, array.layout)
    return sparse_from_parts((array, kind, new_counter()))


def on_device_of(array: Any, source: Tensor) -> Any:
    """An array of the host as one of the device of `source`, for kernels that made it of numbers."""
    backend = source._kind.backend
    if type(array) is not np.ndarray or backend.array_class is np.ndarray or source._kind.dataless:
        return array
    return backend.from_host(array)


def dense_tensor(array: Any, source: Tensor, counter: Counter | None = None) -> Tensor:
    """A dense tensor outside any graph over `array`, on the device of `source`."""
    array = on_device_of(array, source)
    kind = kind_of_array(array.dtype, source._kind.device)
    return Tensor._from_parts((array, kind, new_counter() if counter is None else counter))
