"""Matrices of which two in every four neighbours of a row are zero: the others are kept, with their places.

PyTorch has them on CUDA devices, for two libraries, whose names the classes carry. Here both keep the same, and
products are those of the dense matrix: such a matrix takes half the memory, and no less time.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, NamedTuple

from .._core.dtype import NAMES, dtype, int64, uint8
from .._core.tensor import Tensor
from .._dispatch.public.class_dispatch import make_wrapper_subclass
from .._dispatch.public.overrides import default_torch_function, original_of

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]  # fmt: skip

_GROUP, _KEPT = 4, 2
_DENSE_OPS = frozenset(("linear", "matmul", "mm", "addmm"))
"""The operators that such matrices have beside those that look at no element."""


class _Limits(NamedTuple):
    """The sizes of which a matrix's are multiples."""

    sparse_min_rows: int
    sparse_min_cols: int


def _limits(**sizes: tuple[int, int]) -> dict[dtype, _Limits]:
    return {NAMES[name]: _Limits(*each) for name, each in sizes.items()}


def packed(dense: Tensor) -> tuple[Tensor, Tensor]:
    """The kept elements of each row, and their places among their four neighbours.

    Of a group with more than two elements that are not zero the first ones of the largest are kept.
    """
    rows, columns = dense.shape
    groups = dense.reshape(rows, columns // _GROUP, _GROUP)
    largest = groups.abs().argsort(dim=-1, descending=True, stable=True)[..., :_KEPT]
    places = largest.sort(dim=-1).values
    return groups.gather(-1, places).reshape(rows, -1), places.to(uint8).reshape(rows, -1)


def expanded(kept: Tensor, places: Tensor, shape: Any) -> Tensor:
    """The dense matrix of what `packed` gave."""
    rows, columns = shape
    groups = kept.new_zeros((rows, columns // _GROUP, _GROUP))
    index = places.to(int64).reshape(rows, -1, _KEPT)
    return groups.scatter(-1, index, kept.reshape(rows, -1, _KEPT)).reshape(rows, columns)


class SparseSemiStructuredTensor(Tensor):
    """A matrix with two zeros in every four neighbours of a row; `from_dense` makes one of a dense matrix.

    `packed` and `meta` are the kept elements and their places, `packed_t` and `meta_t` those of the transpose.
    """

    _DEFAULT_ALG_ID: ClassVar[int] = 0
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar[dict[dtype, _Limits]] = {}
    _FORCE_CUTLASS: ClassVar[bool] = False
    _FUSE_TRANSPOSE: ClassVar[bool] = False
    _PROTOTYPE_WARNING_SHOWN: ClassVar[bool] = False
    BACKEND: ClassVar[str]

    packed: Tensor | None = None
    meta: Tensor | None = None
    packed_t: Tensor | None = None
    meta_t: Tensor | None = None
    compressed_swizzled_bitmask: Tensor | None = None
    fuse_transpose_cusparselt: bool = False
    alg_id_cusparselt: int = 0

    @staticmethod
    def __new__(
        cls: Any, shape: Any, packed: Tensor | None, meta: Tensor | None, packed_t: Tensor | None,
        meta_t: Tensor | None, compressed_swizzled_bitmask: Tensor | None, fuse_transpose_cusparselt: bool = False,
        alg_id_cusparselt: int = 0, requires_grad: bool = False,
    ) -> Any:  # fmt: skip
        own = packed if packed is not None else packed_t
        if own is None:
            raise ValueError("At least one of packed or packed_t must be provided")
        if not SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN:
            SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN = True
            warnings.warn(
                "The PyTorch API of SparseSemiStructuredTensor is in prototype stage and will change in the near "
                "future.",
                UserWarning,
                stacklevel=2,
            )
        made: Any = make_wrapper_subclass(
            cls, tuple(shape), device=own.device, dtype=own.dtype, requires_grad=requires_grad
        )
        made.packed, made.meta, made.packed_t, made.meta_t = packed, meta, packed_t, meta_t
        made.compressed_swizzled_bitmask = compressed_swizzled_bitmask
        made.fuse_transpose_cusparselt, made.alg_id_cusparselt = fuse_transpose_cusparselt, alg_id_cusparselt
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name, kwargs = original_of(func).__name__, kwargs or {}
        if name in ("t", "transpose"):
            return args[0]._transposed()
        if name in ("detach", "clone", "contiguous"):
            return args[0]._again()
        if name in _DENSE_OPS:
            return func(*map(_dense, args), **{key: _dense(value) for key, value in kwargs.items()})
        if name.startswith("__get__") or not name.islower():
            return default_torch_function(cls, func, types, args, kwargs)
        raise NotImplementedError(
            f"{cls.__name__} matmul: operation is not supported: {name}. Convert the matrix first, with .to_dense()"
        )

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{cls.__name__}: operation is not supported: {func}")

    def _again(self) -> Any:
        return type(self)(
            self.shape, self.packed, self.meta, self.packed_t, self.meta_t, self.compressed_swizzled_bitmask,
            self.fuse_transpose_cusparselt, self.alg_id_cusparselt, self.requires_grad,
        )  # fmt: skip

    def _transposed(self) -> Any:
        return type(self)(
            self.shape[::-1], self.packed_t, self.meta_t, self.packed, self.meta, self.compressed_swizzled_bitmask,
            self.fuse_transpose_cusparselt, self.alg_id_cusparselt, self.requires_grad,
        )  # fmt: skip

    def _opened(self) -> Tensor:
        """The matrix with its zeros."""
        if self.packed is not None and self.meta is not None:
            return expanded(self.packed, self.meta, tuple(self.shape))
        assert self.packed_t is not None
        assert self.meta_t is not None
        return expanded(self.packed_t, self.meta_t, tuple(self.shape)[::-1]).t()

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor: Tensor) -> None:
        if not original_tensor.is_cuda:
            raise RuntimeError(
                f"Error original_tensor.device= {original_tensor.device} is not supported! Only CUDA tensors are "
                "currently supported."
            )
        if original_tensor.dim() != 2:
            raise RuntimeError(
                f"Error original_tensor.dim = {original_tensor.dim()} is not supported! Only 2d tensors."
            )
        if not original_tensor.is_contiguous():
            raise RuntimeError("Error original_tensor is not contiguous! Only contiguous tensors are supported.")
        limits = cls._DTYPE_SHAPE_CONSTRAINTS.get(original_tensor.dtype)
        if limits is None:
            raise RuntimeError(f"Error original_tensor.dtype {original_tensor.dtype} is not a supported dtype!")
        rows, columns = original_tensor.shape
        if rows < limits[0] or rows % limits[0] or columns < limits[1] or columns % limits[1]:
            raise RuntimeError(
                f"Error original_tensor.shape {original_tensor.shape} is not supported! Both dimensions must be "
                f"larger or equal than and a multiple of {tuple(limits)}"
            )

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> SparseSemiStructuredTensor:
        """The matrix of what is largest in every four neighbours."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        made: SparseSemiStructuredTensor = cls(original_tensor.shape, *packed(original_tensor), None, None, None)
        return made

    @classmethod
    def prune_dense_static_sort(cls, original_tensor: Tensor, algorithm: str = "") -> SparseSemiStructuredTensor:
        """Prune a matrix two of four, for itself and its transpose: that is pruned again, from what is left."""
        if not original_tensor.is_cuda:
            raise NotImplementedError(
                "Could not run 'aten::_sparse_semi_structured_tile' with arguments from the 'CPU' backend"
            )
        cls._validate_device_dim_dtype_shape(original_tensor)
        kept = packed(original_tensor)
        transpose = expanded(*kept, tuple(original_tensor.shape)).t().contiguous()
        made: SparseSemiStructuredTensor = cls(original_tensor.shape, *kept, *packed(transpose), None)
        return made


def _repr(self: SparseSemiStructuredTensor, *, tensor_contents: str | None = None) -> str:
    return f"{type(self).__name__}(shape={self.shape})"


# Fewer options than those of all other tensors, as in PyTorch.
for _name, _method in (("__repr__", _repr), ("to_dense", SparseSemiStructuredTensor._opened)):
    setattr(SparseSemiStructuredTensor, _name, _method)


def _dense(value: Any) -> Any:
    return value._opened() if isinstance(value, SparseSemiStructuredTensor) else value


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """One with the sizes that CUTLASS takes."""

    BACKEND = "cutlass"
    _DTYPE_SHAPE_CONSTRAINTS = _limits(int8=(16, 128), float16=(32, 64), bfloat16=(32, 64), float32=(32, 32))


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """One with the sizes that cuSPARSELt takes."""

    BACKEND = "cusparselt"
    _DTYPE_SHAPE_CONSTRAINTS = _limits(float8_e4m3fn=(32, 32), int8=(32, 32), float16=(16, 16), bfloat16=(16, 16))


def to_sparse_semi_structured(
    original_tensor: Tensor, transposed: bool = False, alg_id: int = 0
) -> SparseSemiStructuredTensor:
    """A dense matrix on a CUDA device as one with two zeros in every four neighbours of a row."""
    if transposed:
        raise DeprecationWarning(
            "Setting transpose from to_sparse_semi_structured is deprecated and will be removed in a future release. "
            "SparseSemiStructuredTensor only support contiguous input tensors."
        )
    forced = SparseSemiStructuredTensor._FORCE_CUTLASS
    cls = SparseSemiStructuredTensorCUTLASS if forced else SparseSemiStructuredTensorCUSPARSELT
    return cls.from_dense(original_tensor, alg_id)
