"""Derivatives of the entries of the operator database: of first and second order, and in forward mode.

Both libraries differentiate the same function at the same point along the same random directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch as pytorch

import flambeau

from .checks import Outcome, arguments, both, report, translated
from .compare import TENSORS, Tolerance, differences, magnitude, tensors_in
from .entries import Entry
from .translate import tensor, translate

_FIRST, _SECOND = 1e-7, 1e-6
_SINGLE = 1e-5
"""What is allowed, relative to the largest value: the sums of a gradient may run in any order."""


_MEASURE = 1e-6
"""How far finite differences may be off."""


class Differentiable:
    """A sample as a function of its differentiable inputs, in one library."""

    def __init__(self, library: Any, op: Any, process: Any, wrapper: Any, args: Any, kwargs: Any) -> None:
        self.library = library
        self.inputs = [each for each in tensors_in((args, kwargs)) if each.requires_grad]
        self._positions = {id(each): position for position, each in enumerate(self.inputs)}
        self._op, self._process, self._wrapper, self._args, self._kwargs = op, process, wrapper, args, kwargs

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """The differentiable results."""
        args, kwargs = self._with(self._args, inputs), self._with(self._kwargs, inputs)
        results = tensors_in(self._process(self._wrapper(self._op, *args, **kwargs)))
        return [each for each in results if each.is_floating_point() or each.is_complex()]

    def _with(self, value: Any, inputs: list[Any]) -> Any:
        if isinstance(value, TENSORS):
            return inputs[self._positions[id(value)]] if id(value) in self._positions else value
        if isinstance(value, dict):
            return {key: self._with(item, inputs) for key, item in value.items()}
        if isinstance(value, (list, tuple)) and tensors_in(value):
            items = [self._with(item, inputs) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    def first(self) -> list[Any]:
        """The gradients of the results, weighted at random."""
        results = [each for each in self(self.inputs) if each.requires_grad]
        if not results:
            return []
        return list(self.library.autograd.grad(results, self.inputs, self.weights(results, 1), allow_unused=True))

    def second(self) -> list[Any]:
        """The gradients of the gradients, with respect to the inputs and to the weights."""
        results = [each for each in self(self.inputs) if each.requires_grad]
        if not results:
            return []
        grad = self.library.autograd.grad
        weights = [each.requires_grad_() for each in self.weights(results, 1)]
        gradients = grad(results, self.inputs, weights, create_graph=True, allow_unused=True)
        again = [each for each in gradients if each is not None and each.requires_grad]
        if not again:
            return []
        return list(grad(again, [*self.inputs, *weights], self.weights(again, 2), allow_unused=True))

    def slope(self, ways: list[Any]) -> list[Any]:
        """Central differences of the results along `ways`."""
        step = 1e-6
        with self.library.no_grad():
            ends = [
                self([_moved(each.detach(), sign * step * way) for each, way in zip(self.inputs, ways, strict=True)])
                for sign in (1, -1)
            ]
        return [(right.to_dense() - left.to_dense()) / (2 * step) for right, left in zip(*ends, strict=True)]

    def forward(self) -> list[Any]:
        """The tangents of the results."""
        ad = self.library.autograd.forward_ad
        directions = self.weights(self.inputs, 3)
        with ad.dual_level():
            duals = [ad.make_dual(each.detach(), way) for each, way in zip(self.inputs, directions, strict=True)]
            return [ad.unpack_dual(each).tangent for each in self(duals)]

    def weights(self, like: list[Any], seed: int) -> list[Any]:
        """Reproducible tensors of random numbers."""
        numbers = numpy.random.default_rng(seed)
        made = []
        for each in like:
            values = numbers.standard_normal(tuple(each.shape))
            if each.is_complex():
                values = values + 1j * numbers.standard_normal(tuple(each.shape))
            made.append(pytorch.tensor(values, dtype=getattr(pytorch, str(each.dtype).removeprefix("torch."))))
        return made if self.library is pytorch else [tensor(each) for each in made]


def _moved(value: Any, by: Any) -> Any:
    return value + by if value.layout is pytorch.strided else (value.to_dense() + by).sparse_mask(value)


def _leaf(value: Any) -> Any:
    """What requires gradients, as a leaf: some samples are views made without recording."""
    if isinstance(value, pytorch.Tensor) and value.requires_grad and (value._is_view() or not value.is_leaf):
        return value.detach().requires_grad_()
    return value


def compare(
    entry: Entry,
    sample: Any,
    differentiate: Callable[[Differentiable], Any],
    base: float,
    judged: Callable[[Differentiable, Differentiable, Any, list[Any]], bool] | None = None,
) -> Iterator[str]:
    """Where derivatives differ, unless ours are `judged` right: they may be nearer to the slope than PyTorch's."""
    process, our_process = entry.process(sample)
    wrapper = entry.info.gradcheck_wrapper
    theirs = Differentiable(pytorch, entry.info.op, process, wrapper, *arguments(sample.transform(_leaf)))
    ours = Differentiable(flambeau, entry.op, our_process, translate(wrapper), *translated(sample))
    if not theirs.inputs:
        return
    if any(each.dtype is pytorch.float32 for each in theirs.inputs):
        base = max(base, _SINGLE)
    expected, actual = both(lambda: differentiate(theirs), lambda: differentiate(ours))
    if len(expected) != len(actual):
        yield f"{len(actual)} derivatives, not {len(expected)}"
        return
    for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
        if left is None or right is None:
            if not (_is_nothing(left) and _is_nothing(right)):
                yield f"derivative {position} is {_presence(right)}, not {_presence(left)}"
        else:
            allowed = Tolerance(base * magnitude(left), base)
            found = next(differences(taken(left), taken(right), allowed, f"derivative {position}: "), None)
            if found and not (judged or _better)(theirs, ours, differentiate, actual):
                yield found
                return


def taken(gradient: Any) -> Any:
    """A gradient whose signs are taken: which formula leaves some of them to be taken is not compared."""
    return gradient.detach().resolve_conj().resolve_neg() if str(gradient.layout) == "torch.strided" else gradient


def _better(theirs: Differentiable, ours: Differentiable, differentiate: Any, actual: list[Any]) -> bool:
    """Whether our derivative is right where PyTorch's is not; a second one is as good as the first it is made from."""
    if differentiate is not Differentiable.second:
        try:
            return _as_measured(theirs, differentiate, actual)
        except RuntimeError:  # the sample cannot be moved: it looks at memory outside its input
            return False
    expected, found = theirs.first(), ours.first()
    differ = any(
        left is not None
        and right is not None
        and next(differences(taken(left), taken(right), Tolerance(_FIRST, _FIRST)), None)
        for left, right in zip(expected, found, strict=True)
    )
    return differ and _as_measured(theirs, Differentiable.first, found)


def _as_measured(function: Differentiable, differentiate: Any, ours: list[Any]) -> bool:
    """Whether our derivatives, not PyTorch's, are those that finite differences of PyTorch's own function show."""
    ways = [
        way if each.layout is pytorch.strided else way.sparse_mask(each.detach()).to_dense()  # only its places move
        for each, way in zip(function.inputs, function.weights(function.inputs, 3), strict=True)
    ]
    if differentiate is Differentiable.forward:
        pairs = zip(function.slope(ways), ours, strict=True)
        return all(near(measured, as_theirs(found)) for measured, found in pairs if found is not None)
    slopes = function.slope(ways)
    weights = function.weights(slopes, 1)
    measured_total = sum((left.conj() * right).real.sum() for left, right in zip(weights, slopes, strict=True))
    total = sum(
        (as_theirs(each).conj() * way).real.sum() for each, way in zip(ours, ways, strict=True) if each is not None
    )
    return near(pytorch.as_tensor(measured_total), pytorch.as_tensor(total))


def as_theirs(value: Any) -> pytorch.Tensor:
    return pytorch.from_numpy(taken(value.detach().to_dense()).numpy().copy())


def near(measured: pytorch.Tensor, found: pytorch.Tensor) -> bool:
    return bool(((measured - found).abs() <= _MEASURE * magnitude(measured)).all())


def _is_nothing(value: Any) -> bool:
    """No derivative, and one of zeros, say the same."""
    value = value if value is None else value.to_dense()
    return value is None or not bool((value != 0).any())


def _presence(value: Any) -> str:
    return "None" if value is None else "a tensor"


def supported(entry: Entry, sample: Any, differentiate: Callable[[Differentiable], Any]) -> bool:
    """Whether PyTorch has this derivative for this sample."""
    theirs = Differentiable(
        pytorch, entry.info.op, entry.process(sample)[0], entry.info.gradcheck_wrapper, *arguments(sample)
    )
    try:
        differentiate(theirs)
    except Exception:
        return False
    return True


def gradient(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Gradients of first order."""
    for sample in entry.samples(dtype, requires_grad=True):
        yield report(sample, compare, entry, sample, Differentiable.first, _FIRST)


def second_gradient(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Gradients of gradients."""
    if entry.info.supports_gradgrad:
        for sample in entry.samples(dtype, requires_grad=True):
            if supported(entry, sample, Differentiable.second):
                yield report(sample, compare, entry, sample, Differentiable.second, _SECOND)


def forward_mode(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Tangents, where PyTorch has them."""
    if entry.info.supports_forward_ad:
        for sample in entry.samples(dtype, requires_grad=True):
            if supported(entry, sample, Differentiable.forward):
                yield report(sample, compare, entry, sample, Differentiable.forward, _FIRST)
