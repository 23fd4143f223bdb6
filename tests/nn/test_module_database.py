"""PyTorch's module database, entry by entry: the same layer under both libraries, with the same weights."""

from __future__ import annotations

import copy
import functools
import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch as pytorch
from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInfo, module_db

import flambeau
from tests.conformance.compare import TENSORS, Tolerance, differences, strides_differ, tensors_in
from tests.conformance.translate import translate
from tests.support.oracle import older_than

MOST_SAMPLES = 16
"""Of entries with more samples, this many are taken, evenly spread."""

ONCE = {"CTCLoss"}
"""Layers with a derivative that has no derivative."""

entries = pytest.mark.parametrize("info", module_db, ids=lambda info: info.module_cls.__name__)
modes = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


class Pair:
    """One sample of an entry: the module of both libraries, with the same weights, and the same arguments."""

    def __init__(self, info: ModuleInfo, sample: Any, dtype: pytorch.dtype, training: bool) -> None:
        construction, call = sample.constructor_input, sample.forward_input
        counterparts: dict[int, Any] = {}
        pytorch.manual_seed(0)
        self.expected = info.module_cls(*construction.args, **construction.kwargs).to(dtype).train(training)
        made = _class(info)(*_translated(construction.args), **_translated(construction.kwargs))
        self.actual = made.to(translate(dtype)).train(training)
        self.args, self.kwargs = _leaves(call.args, leaves := {}), _leaves(call.kwargs, leaves)
        self.translated_args = _translated(self.args, counterparts)
        self.translated_kwargs = _translated(self.kwargs, counterparts)
        assert older_than(2, 13) or repr(self.actual) == repr(self.expected)
        if info.is_lazy:
            self.call()
        self.actual.load_state_dict(translate(self.expected.state_dict()))

    def call(self) -> tuple[Any, Any]:
        """Both results, from the same random numbers."""
        return self.call_pytorch(), self.call_flambeau(self.actual)

    def call_pytorch(self) -> Any:
        pytorch.manual_seed(1)
        return self.expected(*self.args, **self.kwargs)

    def call_flambeau(self, module: Any) -> Any:
        flambeau.manual_seed(1)
        return module(*self.translated_args, **self.translated_kwargs)

    def leaves(self) -> tuple[list[Any], list[Any]]:
        """What is differentiated by: the arguments, then the parameters."""
        expected = [*tensors_in([self.args, self.kwargs]), *self.expected.parameters()]
        actual = [*tensors_in([self.translated_args, self.translated_kwargs]), *self.actual.parameters()]
        pairs = [pair for pair in zip(expected, actual, strict=True) if pair[0].requires_grad]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _class(info: ModuleInfo) -> Any:
    return getattr(flambeau.nn, info.module_cls.__name__)


def _mapped(function: Any, value: Any) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_mapped(function, item) for item in value)
    return {key: _mapped(function, item) for key, item in value.items()} if isinstance(value, dict) else function(value)


def _leaves(value: Any, found: dict[int, Any]) -> Any:
    """The arguments with leaves for tensors: some samples compute one tensor from another."""

    def leaf(value: Any) -> Any:
        if not isinstance(value, pytorch.Tensor):
            return value
        return found.setdefault(id(value), value.detach().requires_grad_(value.requires_grad))

    return _mapped(leaf, value)


def _translated(value: Any, counterparts: dict[int, Any] | None = None) -> Any:
    """Flambeau's counterpart of arguments; one tensor in two places stays one tensor."""
    known = {} if counterparts is None else counterparts

    def counterpart(value: Any) -> Any:
        if id(value) not in known:
            known[id(value)] = translate(value)
        return known[id(value)]

    return _mapped(counterpart, value)


def _samples(
    info: ModuleInfo, dtype: pytorch.dtype, training: bool, most: int = MOST_SAMPLES, gradients: bool = True
) -> list[Any]:
    pytorch.manual_seed(0)
    found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=gradients, training=training)
    found = [sample for sample in found if sample.forward_input is not None]
    step = max(1, -(-len(found) // most))
    return found[::step]


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _same(expected: Any, actual: Any, tolerance: Tolerance | None = None) -> None:
    found = list(differences(expected, actual, tolerance))
    if not found:
        pairs = zip(tensors_in(expected), tensors_in(actual), strict=True)
        found = [difference for left, right in pairs if (difference := strides_differ(left, right))]
    assert not found, "\n".join(found[:5])


def _same_values(expected: Any, actual: Any) -> None:
    found = list(differences(expected, actual))
    assert not found, "\n".join(found[:5])


def _same_state(expected: pytorch.nn.Module, actual: Any) -> None:
    assert list(expected.state_dict()) == list(actual.state_dict())
    _same(dict(expected.state_dict()), dict(actual.state_dict()))
    for left, right in zip(expected.parameters(), actual.parameters(), strict=True):
        assert left.requires_grad == right.requires_grad
        assert type(right) is flambeau.nn.Parameter


@modes
@entries
def test_forward_and_gradients(info: ModuleInfo, training: bool) -> None:
    with _quiet():
        for sample in _samples(info, pytorch.float64, training):
            pair = Pair(info, sample, pytorch.float64, training)
            expected, actual = pair.call()
            _same(expected, actual)
            assert repr(pair.actual) == repr(pair.expected)
            _same_state(pair.expected, pair.actual)
            _compare_gradients(info, pair, expected, actual)


def _compare_gradients(info: ModuleInfo, pair: Pair, expected: Any, actual: Any) -> None:
    inputs, actual_inputs = pair.leaves()
    results, actual_results = (
        [each for each in tensors_in(result) if each.requires_grad] for result in (expected, actual)
    )
    assert len(results) == len(actual_results)
    if not results or not inputs:
        return
    weights = [pytorch.randn_like(each) for each in results]
    twice = info.supports_gradgrad and info.module_cls.__name__ not in ONCE
    options = {"create_graph": twice, "allow_unused": True}
    first = pytorch.autograd.grad(results, inputs, weights, **options)
    actual_first = flambeau.autograd.grad(actual_results, actual_inputs, translate(weights), **options)
    _same_values(first, actual_first)
    if not twice:
        return
    weights = [None if each is None else pytorch.randn_like(each) for each in first]
    second = _second(pytorch, first, inputs, weights)
    if second is not None:
        _same_values(second, _second(flambeau, actual_first, actual_inputs, translate(weights)))


def _second(torch: Any, slopes: Any, inputs: list[Any], weights: list[Any]) -> Any:
    """Second derivatives, zeros for those that do not exist; None where PyTorch says that it cannot compute them."""
    kept = [pair for pair in zip(slopes, weights, strict=True) if pair[0] is not None and pair[0].requires_grad]
    found: Any = [None] * len(inputs)
    if kept:
        slopes, weights = zip(*kept, strict=True)
        try:
            found = torch.autograd.grad(slopes, inputs, weights, allow_unused=True)
        except RuntimeError as error:
            if torch is pytorch and re.search("not implemented|trying to differentiate twice", str(error)):
                return None
            raise
    return [torch.zeros_like(input) if each is None else each for each, input in zip(found, inputs, strict=True)]


@entries
def test_every_dtype(info: ModuleInfo) -> None:
    with _quiet():
        for dtype in info.supported_dtypes("cpu"):
            for sample in _samples(info, dtype, True, most=4, gradients=False):
                pair = Pair(info, sample, dtype, True)
                try:
                    expected = pair.call_pytorch()
                except RuntimeError as error:
                    if "not implemented for" in str(error):  # PyTorch has no kernel
                        continue
                    raise
                wider = Tolerance(1e-5, 4e-6) if dtype is pytorch.float32 else Tolerance(1e-2, 1e-2)
                _same(expected, pair.call_flambeau(pair.actual), wider)


@entries
def test_copies(info: ModuleInfo) -> None:
    with _quiet():
        sample = _samples(info, pytorch.float64, True, gradients=False)[0]
        pair = Pair(info, sample, pytorch.float64, True)
        copies = [copy.deepcopy(pair.actual), pickle.loads(pickle.dumps(pair.actual))]
        expected = pair.call_pytorch()
        for made in copies:
            assert type(made) is type(pair.actual) or info.is_lazy
            assert repr(made) == repr(pair.expected)
            _same(expected, pair.call_flambeau(made))


@entries
def test_memory_format(info: ModuleInfo) -> None:
    with _quiet():
        for sample in _samples(info, pytorch.float64, True, most=8, gradients=False):
            shapes = [each.dim() for each in tensors_in([sample.forward_input.args, sample.forward_input.kwargs])]
            if not {4, 5}.intersection(shapes):
                continue
            pair = Pair(info, sample, pytorch.float64, True)
            for each in _channels_last(pair):
                pair.args, pair.kwargs, pair.translated_args, pair.translated_kwargs = each
                _same(*pair.call())


def _channels_last(pair: Pair) -> Iterator[tuple[Any, Any, Any, Any]]:
    """The arguments in channels-last layout; afterwards the modules are in it, too."""

    def converted(torch: Any, value: Any) -> Any:
        if isinstance(value, TENSORS) and value.dim() in (4, 5):
            return value.to(memory_format=torch.channels_last if value.dim() == 4 else torch.channels_last_3d)
        return value

    expected, actual = (
        functools.partial(_mapped, functools.partial(converted, torch)) for torch in (pytorch, flambeau)
    )
    arguments = (
        expected(pair.args),
        expected(pair.kwargs),
        actual(pair.translated_args),
        actual(pair.translated_kwargs),
    )
    yield arguments
    dims = {each.dim() for each in pair.expected.parameters()}
    if 4 in dims or 5 in dims:
        name = "channels_last" if 4 in dims else "channels_last_3d"
        pair.expected.to(memory_format=getattr(pytorch, name))
        pair.actual.to(memory_format=getattr(flambeau, name))
        yield arguments


@pytest.mark.parametrize(
    "info",
    [info for info in module_db if info.module_error_inputs_func is not None],
    ids=lambda info: info.module_cls.__name__,
)
def test_errors(info: ModuleInfo) -> None:
    wrong = info.module_error_inputs_func(info, device="cpu", dtype=pytorch.float32, requires_grad=False, training=True)
    warnings.simplefilter("ignore", FutureWarning)  # of the database's expressions
    for each in wrong:
        construction, call = each.module_error_input.constructor_input, each.module_error_input.forward_input
        arguments = _translated(construction.args), _translated(construction.kwargs)
        if each.error_on is ModuleErrorEnum.CONSTRUCTION_ERROR:
            with pytest.raises(each.error_type, match=each.error_regex):
                _class(info)(*arguments[0], **arguments[1])
        else:
            module = _class(info)(*arguments[0], **arguments[1])
            with pytest.raises(each.error_type, match=each.error_regex):
                module(*_translated(call.args), **_translated(call.kwargs))
