"""Running a model at several sizes of its dynamic axes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .._core.arrays.lazy_signs import content
from .._core.backend import to_host
from .._core.tensor import Tensor
from ..compiler.capture.trace import Run, Trace, trace_call
from ..random import get_rng_state, set_rng_state
from ..utils._pytree import tree_flatten, tree_unflatten
from ._element_types import tensor_over
from .errors import OnnxExporterError

Bounds = tuple[int, int]
"""The smallest and the largest size of an axis."""
_ANY: Bounds = (1, sys.maxsize)


class Place(NamedTuple):
    """A dimension of an input."""

    leaf: int
    """The number of the tensor among the leaves of the arguments."""
    dim: int
    factor: int = 1
    shift: int = 0
    """The size of the dimension is `factor` times that of the axis, and `shift` more."""


class Samples(NamedTuple):
    """The runs, what each axis was in them, and the numbers of the inputs in the traces."""

    runs: list[Run]
    axes: dict[str, tuple[int, ...]]
    inputs: list[int | None]


def sample(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], axes: Mapping[str, Sequence[Place]],
    new_trace: Callable[[], Trace], bounds: Mapping[str, Bounds] | None = None,
) -> Samples:  # fmt: skip
    """Run the model as given, then at other sizes of each axis, and of all of them together.

    Sizes are doubled first, since many models want multiples; the last run has odd ones if the model allows that. Where
    there are `bounds`, sizes stay within them, and two further runs tell functions apart, if the model runs with them:
    one with a least value shows at the smallest sizes, a division that rounds at one less than a multiple.
    """
    leaves, structure = tree_flatten((list(args), dict(kwargs)))
    given = {name: _size(leaves, places) for name, places in axes.items()}
    state = get_rng_state()
    done: dict[tuple[int, ...], tuple[Run, list[int | None]]] = {}

    def run(sizes: Mapping[str, int]) -> tuple[Run, list[int | None]]:
        key = tuple(sizes.values())
        if key not in done:
            set_rng_state(state)
            arrays = _resized(leaves, axes, sizes)
            positional, named = tree_unflatten(arrays, structure)
            done[key] = _traced(model, positional, named, arrays, new_trace())
        return done[key]

    try:
        # A size of 1 is broadcast: what happens then says nothing about other sizes.
        base = {name: max(size, 2) for name, size in given.items()}
        others = {name: _other_sizes(size, (bounds or {}).get(name, _ANY)) for name, size in base.items()}
        first, inputs = run(base)
        runs, seen = [first], [base]
        for sizes in _variations(base, others, run):
            try:
                runs.append(run(sizes)[0])
            except Exception as error:
                raise OnnxExporterError(
                    f"the model does not run when its dynamic axes have the sizes {_said(sizes)}: {error}"
                ) from error
            seen.append(sizes)
        least = {name: max(low, 2) for name, (low, _) in (bounds or {}).items()}
        odd = {name: max(others[name][0] - 1 if others[name] else 0, size) for name, size in least.items()}
        for sizes in (odd, least):
            if sizes and sizes not in seen and _runs(run, sizes):
                runs.append(run(sizes)[0])
                seen.append(sizes)
    finally:
        set_rng_state(state)
    return Samples(runs, {name: tuple(each[name] for each in seen) for name in axes}, inputs)


def _other_sizes(size: int, bounds: Bounds) -> list[int]:
    """Sizes that an axis takes in further runs, the best one first; none if it may only have the size that it has."""
    low, high = bounds
    wanted = [2 * size, 2 * size + 1, 3 * size]
    if high < wanted[-1]:
        wanted += [(size + high) // 2, size // 2, size - 1, low]
    within = [each for each in dict.fromkeys(wanted) if max(low, 2) <= each < high and each != size]
    return within if high in (size, sys.maxsize) else [*within, high]  # at the end of a table a slice is all of it


def _variations(
    base: dict[str, int], others: dict[str, list[int]], run: Callable[[Mapping[str, int]], Any]
) -> list[dict[str, int]]:
    """The sizes of the further runs; axes that can only change together do so."""
    moving = [name for name in base if others[name]]
    if not moving:
        return []
    groups: list[list[str]] = []
    bound: list[str] = []
    for name in moving:
        running = (size for size in others[name][:2] if _runs(run, base | {name: size}))
        first = next(running, None)
        if first is None:
            bound.append(name)
            continue
        groups.append([name])
        alike = (size for size in chain([first], running) if _has_ops_of(run, base, base | {name: size}))
        best = next(alike, first)
        others[name] = [best, *[size for size in others[name] if size != best]]
    if bound:
        groups = _joined(groups, bound, base, others, run)
    alone = [base | {name: others[name][0] for name in group} for group in groups]
    count = max(len(others[name]) for name in moving)
    together = [base | {name: _at(others[name], number) for name in moving} for number in range(1, max(count, 2))]
    last = next((each for each in together if _runs(run, each)), together[-1])
    return [*alone, last] if len(groups) > 1 else [alone[0], last]


def _joined(
    groups: list[list[str]], bound: list[str], base: dict[str, int], others: dict[str, list[int]],
    run: Callable[[Mapping[str, int]], Any],
) -> list[list[str]]:  # fmt: skip
    """The groups, and the axes that cannot change alone: together, or with those of their size that can.

    A mask that is indexed may have more rows than the tokens, which may not be more than its rows.
    """
    if not _runs(run, base | {name: others[name][0] for name in bound}):
        tied = [name for (name,) in groups if any(base[name] == base[each] for each in bound)]
        together = base | dict.fromkeys([*bound, *tied], others[bound[0]][0])
        if tied and _runs(run, together):
            others |= dict.fromkeys(tied, others[bound[0]])
            return [*(group for group in groups if group[0] not in tied), [*bound, *tied]]
    return [*groups, bound]


def _has_ops_of(run: Callable[[Mapping[str, int]], Any], base: Mapping[str, int], sizes: Mapping[str, int]) -> bool:
    first, other = ([call.op for call in run(each)[0].trace.calls] for each in (base, sizes))
    return first == other


def _at(sizes: list[int], number: int) -> int:
    return sizes[min(number, len(sizes) - 1)]


def _runs(run: Callable[[Mapping[str, int]], Any], sizes: Mapping[str, int]) -> bool:
    try:
        run(sizes)
    except Exception:
        return False
    return True


def _said(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _size(leaves: Sequence[Any], places: Sequence[Place]) -> int:
    sizes = {(int(leaves[each.leaf].shape[each.dim]) - each.shift) // each.factor for each in places}
    if len(sizes) > 1:
        raise OnnxExporterError(f"inputs that share a dynamic axis have different sizes there: {sorted(sizes)}")
    return sizes.pop()


def _resized(leaves: Sequence[Any], axes: Mapping[str, Sequence[Place]], sizes: Mapping[str, int]) -> list[Any]:
    """Copies of the inputs in which the axes have the wanted sizes: rows are repeated, or left out."""
    wanted: dict[int, dict[int, int]] = {}
    for name, places in axes.items():
        for leaf, dim, factor, shift in places:
            wanted.setdefault(leaf, {})[dim] = factor * sizes[name] + shift
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


def _traced(
    model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], leaves: Sequence[Any],
    trace: Trace,
) -> tuple[Run, list[int | None]]:  # fmt: skip
    run = trace_call(model, args, kwargs, trace, [each for each in leaves if isinstance(each, Tensor)])
    return run, [run.trace.number_of(each) if isinstance(each, Tensor) else None for each in leaves]
