"""How far results of exported models are from those of programs, under the names of `torch.onnx.verification`."""

from __future__ import annotations

import dataclasses
from typing import Any

from .._core.dtype import bool_, dtype, float32
from .._core.tensor import Tensor
from .._ops.create.constants import tensor
from .._ops.reduce.statistics import histogram
from ..autograd.grad_mode import no_grad
from ..utils._pytree import tree_leaves

__all__ = ["VerificationInfo", "verify_onnx_program"]

_EDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e6)
_LEAST = 1e-10
"""What a relative difference is divided by at least."""


def _histogram(values: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    counts, bounds = histogram(values.reshape(-1), edges)
    return counts, bounds


@dataclasses.dataclass
class VerificationInfo:
    """The largest differences of one value, absolute and relative, and how many elements differ by how much."""

    name: str
    max_abs_diff: float
    max_rel_diff: float
    abs_diff_hist: tuple[Tensor, Tensor]
    rel_diff_hist: tuple[Tensor, Tensor]
    expected_dtype: dtype
    actual_dtype: dtype

    @classmethod
    def from_tensors(cls, name: str, expected: Any, actual: Any) -> VerificationInfo:
        """Compare two tensors, or numbers."""
        one, other = (each if isinstance(each, Tensor) else tensor(each) for each in (expected, actual))
        wide = [each.to(float32) if each.dtype is bool_ else each for each in (one.detach(), other.detach())]
        apart = (wide[0] - wide[1]).abs().to(float32)
        relative = apart / (wide[0].abs().to(float32) + _LEAST)
        edges = tensor(_EDGES, dtype=float32)
        return cls(
            name, float(apart.max()) if apart.numel() else 0.0, float(relative.max()) if apart.numel() else 0.0,
            _histogram(apart, edges), _histogram(relative, edges),
            one.dtype, other.dtype,
        )  # fmt: skip

    def asdict(self) -> dict[str, Any]:
        """The comparison as what JSON can hold."""
        return {
            "name": self.name,
            "max_abs_diff": self.max_abs_diff,
            "max_rel_diff": self.max_rel_diff,
            "abs_diff_hist": [each.tolist() for each in self.abs_diff_hist],
            "rel_diff_hist": [each.tolist() for each in self.rel_diff_hist],
            "expected_dtype": str(self.expected_dtype),
            "actual_dtype": str(self.actual_dtype),
        }


def verify_onnx_program(
    onnx_program: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    compare_intermediates: bool = False,
) -> list[VerificationInfo]:
    """Run the program and its exported form, and compare their results; of the example's inputs if none are given."""
    if compare_intermediates:
        raise NotImplementedError(
            "verify_onnx_program: exported graphs are folded, so that results alone can be compared"
        )
    expected, actual = results_of_both(onnx_program, args, kwargs)
    names = [each.name for each in onnx_program.model_proto.graph.output]
    return [VerificationInfo.from_tensors(*each) for each in zip(names, expected, actual, strict=True)]


def results_of_both(onnx_program: Any, args: Any, kwargs: Any, run: Any = None) -> tuple[list[Any], list[Any]]:
    """What the program gives and what its exported form gives, each as one flat list; `run` runs the latter."""
    source = onnx_program.source
    if source is None:
        raise ValueError("the program from which the model was exported is not known, so that it cannot be run")
    if args is None and kwargs is None:
        args, kwargs = source.args, source.kwargs
    with no_grad():
        expected = tree_leaves(source.called(*(args or ()), **(kwargs or {})))
    return expected, list((run or onnx_program)(*(args or ()), **(kwargs or {})))
