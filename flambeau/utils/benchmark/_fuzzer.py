"""Random inputs for timings: sizes, layouts and contents drawn from distributions, the same as PyTorch's for a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import flambeau as torch

from ..._core.dtype import dtype as DType
from ..._core.dtype import float32
from ..._core.names.same_as import same_as
from ..._core.tensor import Tensor
from ..._ops.random.draws import rand, randint
from ...random import manual_seed

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_DISTRIBUTIONS = ("loguniform", "uniform")
_MOST_ATTEMPTS = 1000


class ParameterAlias:
    """A parameter that has the value of another one."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number that is drawn: uniformly or log-uniformly between two bounds, or from choices with probabilities.

    A `strict` one is not drawn again when the numbers that were drawn with it do not fit.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        if isinstance(distribution, dict):
            if minval is not None or maxval is not None:
                raise AssertionError("When passing a custom distribution, 'minval' and 'maxval' must be None")
            if any(each < 0 for each in distribution.values()):
                raise AssertionError("Probabilities cannot be negative")
            if abs(sum(distribution.values()) - 1) > 1e-5:
                raise AssertionError(f"Distribution is not normalized: it adds up to {sum(distribution.values())}")
        elif distribution not in _DISTRIBUTIONS:
            raise AssertionError(f"Unknown distribution: {distribution}")
        self._name, self._minval, self._maxval = name, minval, maxval
        self._distribution = distribution
        self.strict = strict

    name: str = same_as("_name", "By which tensors refer to it.")

    def sample(self, state: Any) -> Any:
        """Draw a number from the distribution."""
        if isinstance(self._distribution, dict):
            number = state.choice(np.arange(len(self._distribution)), p=tuple(self._distribution.values()))
            return list(self._distribution)[number]
        low, high = self._minval, self._maxval
        assert low is not None
        assert high is not None
        if self._distribution == "loguniform":
            drawn = int(2 ** state.uniform(low=np.log2(low), high=np.log2(high)))
            return max(low, min(drawn, high))
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


class FuzzedTensor:
    """A tensor of a size in terms of parameters, contiguous or not; `roll_parameter` has no effect, as in PyTorch."""

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: DType = float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype, self._cuda = dtype, cuda
        self._constructor = tensor_constructor or self.default_tensor_constructor

    name: str = same_as("_name", "Under which it is handed out.")

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: DType, **kwargs: Any) -> Tensor:
        """Uniform numbers in [0, 1), or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return rand(tuple(size), dtype=dtype)
        return randint(1, 127, tuple(size), dtype=dtype)

    def _sizes(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The size, the steps, and the size of what is sliced by them."""
        dim = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def resolved(values: Sequence[str | int]) -> tuple[int, ...]:
            found = [params.get(each, each) if isinstance(each, str) else each for each in values]
            return tuple(int(each) for each in [*found, *[1] * dim][:dim])

        size, steps = resolved(self._size), resolved(self._steps or ())
        return size, steps, tuple(length * step for length, step in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether the tensor is as large, and as small, as it has to be."""
        size, _, allocation = self._sizes(params)
        count, nbytes = math.prod(size), math.prod(allocation) * self._dtype.itemsize
        return (
            (self._max_allocation_bytes is None or nbytes <= self._max_allocation_bytes)
            and (self._min_elements is None or count >= self._min_elements)
            and (self._max_elements is None or count <= self._max_elements)
        )

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Tensor, dict[str, Any]]:
        size, steps, allocation = self._sizes(params)
        whole: Any = self._constructor(size=allocation, dtype=self._dtype, **params)
        if self._cuda:
            whole = whole.cuda()
        dim = len(size)
        order = np.arange(dim)
        if state.rand() > self._probability_contiguous:
            while dim > 1 and np.all(order == np.arange(dim)):
                order = state.permutation(whole.dim())
            whole = whole.permute(tuple(order.tolist())).contiguous()
            whole = whole.permute(tuple(np.argsort(order).tolist()))
        tensor = whole[tuple(slice(0, length * step, step) for length, step in zip(size, steps, strict=True))]
        described = {
            "numel": int(tensor.numel()), "order": order, "steps": steps, "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }  # fmt: skip
        return tensor, described


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse tensor of a size in terms of parameters, with about a given share of its elements."""

    def __init__(
        self, name: str, size: tuple[str | int, ...], min_elements: int | None = None, max_elements: int | None = None,
        dim_parameter: str | None = None, sparse_dim: str | None = None, nnz: str | None = None,
        density: str | None = None, coalesced: str | None = None, dtype: DType = float32, cuda: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            name, size, min_elements=min_elements, max_elements=max_elements, dim_parameter=dim_parameter, dtype=dtype,
            cuda=cuda,
        )  # fmt: skip
        self._density, self._coalesced, self._sparse_dim = density, coalesced, sparse_dim

    @staticmethod
    def sparse_tensor_constructor(
        size: Sequence[int], dtype: DType, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> Any:
        """`nnz` random elements; coalesced ones are fewer where places coincide, others are there twice."""
        values = FuzzedTensor.default_tensor_constructor((nnz, *size[sparse_dim:]), dtype)
        places = rand(sparse_dim, nnz)
        places = (places * _column(size[:sparse_dim])).long()
        if is_coalesced:
            return torch.sparse_coo_tensor(places, values, tuple(size)).coalesce()
        half = nnz // 2
        return torch.sparse_coo_tensor(
            torch.cat([places[:, :half]] * 2, 1), torch.cat([values[:half]] * 2), tuple(size)
        )

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Tensor, dict[str, Any]]:
        size, _, _ = self._sizes(params)
        density, coalesced = params["density"], params["coalesced"]
        sparse_dim = min(params["sparse_dim"] if self._sparse_dim else len(size), len(size))
        count = max(1, int(np.prod(size[:sparse_dim]) * density))
        tensor = self.sparse_tensor_constructor(size, self._dtype, sparse_dim, count, coalesced)
        if self._cuda:
            tensor = tensor.cuda()
        described = {
            "numel": int(tensor.numel()), "shape": tuple(tensor.size()), "is_coalesced": tensor.is_coalesced(),
            "density": density, "sparsity": 1.0 - density, "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(), "dtype": str(self._dtype),
        }  # fmt: skip
        return tensor, described


def _column(lengths: Sequence[int]) -> Tensor:
    return torch.tensor([float(each) for each in lengths]).unsqueeze(1)


class Fuzzer:
    """Draws parameters until they meet all constraints, and makes tensors of them.

    `take(n)` yields so many times the tensors by name, what is known of each, and the parameters.
    """

    def __init__(
        self,
        parameters: Sequence[FuzzedParameter | Sequence[FuzzedParameter]],
        tensors: Sequence[FuzzedTensor | Sequence[FuzzedTensor]],
        constraints: Sequence[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters)
        self._tensors: list[FuzzedTensor] = _flat(tensors)
        self._constraints = tuple(constraints or ())
        names = [each.name for each in self._parameters] + [each.name for each in self._tensors]
        if len(set(names)) != len(names):
            raise ValueError(f"a name is used twice: {sorted(name for name in set(names) if names.count(name) > 1)}")
        self._rejections = self._total_generated = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, dict[str, Any]], dict[str, Any]]]:
        """Draw parameters and tensors `n` times."""
        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {each.name: each._make_tensor(params, state) for each in self._tensors}
            yield (
                {name: tensor for name, (tensor, _) in made.items()},
                {name: described for name, (_, described) in made.items()},
                params,
            )

    @property
    def rejection_rate(self) -> float:
        """The share of what was drawn that did not meet the constraints."""
        return self._rejections / self._total_generated if self._total_generated else 0.0

    def _generate(self, state: Any) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for _ in range(_MOST_ATTEMPTS):
            drawn: dict[str, Any] = {}
            for each in self._parameters:
                drawn[each.name] = kept[each.name] if each.name in kept else each.sample(state)
                if each.strict:
                    kept[each.name] = drawn[each.name]
            params = _resolved(drawn)
            self._total_generated += 1
            if all(fits(params) for fits in self._constraints) and all(
                each.satisfies_constraints(params) for each in self._tensors
            ):
                return params
            self._rejections += 1
        raise ValueError(f"Failed to generate a set of valid parameters in {_MOST_ATTEMPTS} attempts")


def _flat(values: Sequence[Any]) -> list[Any]:
    """What is listed, and what is in lists there."""
    return [inner for each in values for inner in (each if isinstance(each, (list, tuple)) else (each,))]


def _resolved(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with the values of those that they stand for."""
    found = dict(params)
    while any(isinstance(each, ParameterAlias) for each in found.values()):
        for name, each in found.items():
            if isinstance(each, ParameterAlias):
                if each.alias_to == name:
                    raise ValueError(f"the parameter {name} stands for itself")
                found[name] = found[each.alias_to]
    return found
