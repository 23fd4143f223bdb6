"""Results that an operator's definition leaves open, brought into a form that can be compared.

- A singular vector or an eigenvector may be multiplied by any phase: it is turned so that its largest component is
  real and positive. Those beyond the singular values may be any basis of what the others leave: they are replaced by
  the projection onto it.
- Which of several equal elements is reported is open: an index is replaced by the element that it points to. Where
  the indices are a permutation, they are also compared as a set.
- Where a code says that a matrix has no inverse or factor, what stands in its place is open.
- What a singular matrix gives is open where PyTorch's own result is another one as soon as its arguments move by a
  unit in the last place.
"""

from __future__ import annotations

from typing import Any

import torch as pytorch

import flambeau

from .compare import differences, tensors_in
from .entries import Entry
from .translate import translate

_VECTORS: dict[str, dict[int, int]] = {
    "linalg.eig": {1: -2},
    "linalg.eigh": {1: -2},
    "linalg.svd": {0: -2, 2: -1},
    "svd": {0: -2, 2: -2},
    "svd_lowrank": {0: -2, 2: -2},
    "pca_lowrank": {0: -2, 2: -2},
}
"""Operator -> for each result of vectors, the dimension along which the components of a vector lie."""

_DIM_ARGUMENT = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0}
"""Operator that reports indices -> which of its arguments after the input is `dim`."""

_WITH_CODES = ("linalg.inv_ex", "linalg.solve_ex", "linalg.cholesky_ex")


def settled(name: str, results: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results in comparable form, or as they are where nothing is open."""
    if name in _VECTORS:
        fixed = list(results)
        for position, dim in _VECTORS[name].items():
            fixed[position] = _standard(results[position], dim)
            if name.endswith("svd"):
                fixed += _complement(fixed, position, dim)
        return fixed
    if name in _DIM_ARGUMENT and not kwargs.get("stable"):
        return _pointed_at(name, results, args, kwargs)
    if name in _WITH_CODES and results[-1].device.type != "meta":
        result, codes = results
        return result.masked_fill((codes != 0).reshape(codes.shape + (1,) * (result.ndim - codes.ndim)), 0), codes
    return results


_SOLVING = (
    "cholesky_inverse", "linalg.eig", "linalg.inv_ex", "linalg.ldl_solve", "linalg.lstsq", "linalg.solve_ex",
    "linalg.solve_triangular", "linalg.tensorsolve", "nn.functional.multi_head_attention_forward", "pca_lowrank",
    "svd_lowrank",
)  # fmt: skip
"""Operators that amplify rounding without bound: of singular matrices, or in a softmax of large numbers."""
_DIRECTIONS = 4


def decided_by_rounding(entry: Entry, sample: Any, dtype: pytorch.dtype) -> bool:
    """Whether PyTorch's result is not finite, or it, or that there is one, depends on the last bit of the arguments."""
    if entry.info.name not in _SOLVING:
        return False
    plain = _outcome(entry, sample)
    if plain is not None and not all(bool(each.isfinite().all()) for each in tensors_in(plain)):
        return True
    generator = pytorch.Generator().manual_seed(0)

    def moved(value: Any) -> Any:
        if not isinstance(value, pytorch.Tensor) or not value.is_floating_point():
            return value
        sides = pytorch.randint(-1, 2, value.shape, generator=generator)
        return value.detach() * (1 + pytorch.finfo(value.dtype).eps * sides)

    outcomes = [_outcome(entry, sample.transform(moved)) for _ in range(_DIRECTIONS)]
    if any((plain is None) != (each is None) for each in outcomes):
        return True
    allowed = entry.tolerance(dtype)
    return plain is not None and any(next(differences(plain, translate(each), allowed), None) for each in outcomes)


def _outcome(entry: Entry, sample: Any) -> Any:
    """PyTorch's result in comparable form, or None where it refuses."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    pytorch.manual_seed(0)
    try:
        return settled(entry.info.name, entry.info.op(*args, **kwargs), args, kwargs)
    except RuntimeError:
        return None


def _pointed_at(name: str, results: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(results, (pytorch.Tensor, flambeau.Tensor)):
        if name != "argsort":
            return results  # the median of all elements comes without an index
        results = (None, results)
    values, indices = results
    if indices.device.type == "meta" or indices.numel() == 0:
        return results
    position = 1 + _DIM_ARGUMENT[name]
    dim = kwargs.get("dim", args[position] if len(args) > position else -1)
    source = args[0] if args[0].ndim else args[0].reshape(1)
    shaped = indices
    if indices.ndim < source.ndim:
        shaped = indices.unsqueeze(dim if args[0].ndim else 0)
    found = [values, source.gather(dim, shaped)]
    if name in ("sort", "argsort", "topk"):
        found.append((shaped.sort(dim)[0].diff(dim=dim) == 0).any())  # no element twice
    return found


def _standard(vectors: Any, dim: int) -> Any:
    if vectors.numel() == 0 or vectors.device.type == "meta":
        return vectors
    # Equal moduli up to rounding must give the same choice: later components count a little less.
    largest = vectors.gather(dim, (vectors.abs() * _slope(vectors, dim)).argmax(dim, keepdim=True))
    return vectors * (largest.conj() / largest.abs())


def _complement(results: list[Any], position: int, dim: int) -> list[Any]:
    """Takes the vectors that belong to no singular value off a result, and gives the projection onto them."""
    vectors, along = results[position], -1 if dim == -2 else -2
    determined = results[1].shape[-1]
    if vectors.shape[along] <= determined or vectors.device.type == "meta":
        return []
    results[position] = vectors.narrow(along, 0, determined)
    rest = vectors.narrow(along, determined, vectors.shape[along] - determined)
    return [rest @ rest.mH if dim == -2 else rest.mH @ rest]


def _slope(vectors: Any, dim: int) -> Any:
    library = pytorch if isinstance(vectors, pytorch.Tensor) else flambeau
    shape = [1] * vectors.ndim
    shape[dim] = vectors.shape[dim]
    return 1 - 1e-3 * library.arange(vectors.shape[dim], dtype=library.float64).reshape(shape)
