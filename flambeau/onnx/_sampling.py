"""Running a model at several sizes of its dynamic axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays.lazy_signs import content
from .._core.backend import to_host
from .._core.tensor import Tensor
from ..compiler.capture.trace import Run, Trace, trace_call
from ..compiler.program.sizes import Axes, Bounds, Runs, Sizes, changed_dims, size_at
from ..random import get_rng_state, set_rng_state
from ..utils._pytree import tree_flatten, tree_unflatten
from ._element_types import tensor_over
from .errors import OnnxExporterError


class Samples(NamedTuple):
    """The runs, what each axis was in them, and the numbers of the inputs in the traces."""

    runs: list[Run]
    axes: dict[str, tuple[int, ...]]
    inputs: list[int | None]


_Traced = tuple[Run, list[int | None]]


def sample(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], axes: Axes,
    new_trace: Callable[[], Trace], bounds: Mapping[str, Bounds] | None = None, many: bool = False,
) -> Samples:  # fmt: skip
    """Run the model as given, then at other sizes of each axis, and of all of them together; see `Runs.sample`."""
    leaves, structure = tree_flatten((list(args), dict(kwargs)))
    # A size of 1 is broadcast: what happens then says nothing about other sizes.
    base = {name: max(_size(leaves, places), 2) for name, places in axes.items()}
    state = get_rng_state()

    def run(sizes: Sizes) -> _Traced:
        set_rng_state(state)
        inputs = _resized(leaves, axes, sizes)
        positional, named = tree_unflatten(inputs, structure)
        trace = new_trace()
        done = trace_call(model, positional, named, trace, [each for each in inputs if isinstance(each, Tensor)])
        return done, [trace.number_of(each) if isinstance(each, Tensor) else None for each in inputs]

    runs, made, seen = Runs(base, run, _have_same_ops), list[_Traced](), list[Sizes]()
    try:
        for sizes in runs.sample(list(base), bounds, many=many):
            seen.append(sizes)
            made.append(runs.at(sizes))
    except Exception as error:
        if not made:
            raise
        said = ", ".join(f"{name}={size}" for name, size in seen[-1].items())
        raise OnnxExporterError(
            f"the model does not run when its dynamic axes have the sizes {said}: {error}"
        ) from error
    finally:
        set_rng_state(state)
    return Samples([each for each, _ in made], {name: tuple(each[name] for each in seen) for name in axes}, made[0][1])


def _have_same_ops(first: _Traced, other: _Traced) -> bool:
    ops, others = ([call.op for call in run.trace.calls] for run, _ in (first, other))
    return ops == others


def _size(leaves: Sequence[Any], places: Sequence[Any]) -> int:
    sizes = {size_at(leaves, each) for each in places}
    if len(sizes) > 1:
        raise OnnxExporterError(f"inputs that share a dynamic axis have different sizes there: {sorted(sizes)}")
    return sizes.pop()


def _resized(leaves: Sequence[Any], axes: Axes, sizes: Sizes) -> list[Any]:
    """Copies of the inputs in which the axes have the wanted sizes: rows are repeated, or left out."""
    wanted = changed_dims(axes, sizes)
    made: list[Any] = []
    for number, each in enumerate(leaves):
        if not isinstance(each, Tensor):
            made.append(each)
            continue
        if number not in wanted:
            made.append(each.detach().clone())
            continue
        array = to_host(content(each))
        for dim, size in wanted[number].items():
            array = np.take(array, np.arange(size) % array.shape[dim], axis=dim)
        made.append(tensor_over(np.ascontiguousarray(array)))
    return made
