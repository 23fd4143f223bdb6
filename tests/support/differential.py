"""Run one scenario under PyTorch and under Flambeau, and compare what it observed.

A scenario is a function of one argument, the module that plays `torch`. It returns its observations: any nest of
tuples, lists, dicts, numbers, strings, dtypes, sizes, arrays and tensors. Tensors are compared by value, dtype, shape,
stride, device, `requires_grad`, leafness and the name of their `grad_fn`.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy
import pytest

import flambeau

from .older_oracle import WARNED_SINCE_2_13
from .oracle import older_than, pytorch
from .own_warnings import OWN_REASONS, OWN_REASONS_IN

Scenario = Callable[..., Any]

# By how much a tensor's dtype widens or narrows the relative tolerance, which is meant for float32.
_PRECISION = {
    "torch.float16": 1e3,
    "torch.bfloat16": 1e4,
    "torch.complex32": 1e3,
    "torch.float64": 1e-6,
    "torch.complex128": 1e-6,
}

# What `supported` observes where PyTorch has no kernel. Flambeau may do as it likes there.
_NO_KERNEL = "PyTorch has no kernel"


class _Outcome(tuple[Any, ...]):
    """An observation that remembers the error or warning behind it, for the report of a failed comparison."""

    message: str
    lacks_phrases: bool


def _outcome(observed: tuple[Any, ...], message: str, lacks_phrases: bool = False) -> _Outcome:
    result = _Outcome(observed)
    result.message = message
    result.lacks_phrases = lacks_phrases
    return result


def outcome(action: Callable[..., Any], *phrases: str) -> tuple[Any, ...]:
    """What `action` gave: ("value", result), or ("error", exception type, which of `phrases` its message contains).

    With phrases, PyTorch must raise an error that contains one of them: otherwise the test itself is wrong.
    """
    try:
        return _outcome(("value", action()), "no error", lacks_phrases=bool(phrases))
    except Exception as error:
        found = tuple(phrase for phrase in phrases if phrase in str(error))
        message = f"{type(error).__name__}: {error}"
        return _outcome(("error", type(error).__name__, found), message, lacks_phrases=bool(phrases) and not found)


def supported(action: Callable[..., Any]) -> Any:
    """What `action` gave, as `outcome` says it, but free where PyTorch says that it has no kernel for the dtype."""
    result = outcome(action)
    return _NO_KERNEL if isinstance(result, _Outcome) and "not implemented for" in result.message else result


def warned(action: Callable[..., Any], *phrases: str) -> tuple[Any, ...]:
    """The result of `action`, the categories of its warnings, and which of `phrases` they contain.

    With phrases, PyTorch must warn with one of them: otherwise the test itself is wrong.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = action()
    messages = [str(warning.message) for warning in caught]
    found = [phrase for phrase in phrases if any(phrase in message for message in messages)]
    observed = (result, sorted({warning.category.__name__ for warning in caught}), found)
    return _outcome(observed, f"warnings: {messages}", lacks_phrases=bool(phrases) and not found)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, flambeau.Tensor) or (pytorch is not None and isinstance(value, pytorch.Tensor))


def describe(value: Any) -> Any:
    """A plain Python description of `value`, the same for a PyTorch and for a Flambeau object."""
    if _is_tensor(value):
        grad_fn = value.grad_fn
        return {
            "tensor": describe(value.detach().tolist()) if value.device.type != "meta" else "meta",
            "dtype": str(value.dtype),
            "shape": tuple(value.shape),
            "stride": tuple(value.stride()) if value.numel() > 1 else "any",
            "device": str(value.device),
            "requires_grad": value.requires_grad,
            "is_leaf": value.is_leaf,
            "grad_fn": None if grad_fn is None else grad_fn.name(),
        }
    if isinstance(value, numpy.ndarray):
        return {"array": describe(value.tolist()), "dtype": str(value.dtype), "shape": value.shape}
    if isinstance(value, dict):
        return {key: describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):  # torch.Size and named results too
        return [describe(item) for item in value]
    if isinstance(value, (bool, int, str, bytes, float, complex, type(None))):
        return value
    if isinstance(value, type):
        return value.__name__
    return str(value)


def differences(
    expected: Any, actual: Any, path: str = "result", tolerance: float = 1e-6, precision: float = 1.0
) -> Iterator[str]:
    """Where two descriptions differ, one line each; `precision` is the one of the tensor that they belong to."""
    if isinstance(expected, str) and expected == _NO_KERNEL:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        if expected.keys() != actual.keys():
            yield f"{path}: keys {list(expected)} in PyTorch, {list(actual)} in Flambeau"
        if "tensor" in expected:
            precision = _PRECISION.get(expected.get("dtype", ""), 1.0)
        for key in expected:
            if key in actual:
                yield from differences(expected[key], actual[key], f"{path}[{key!r}]", tolerance, precision)
    elif isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(expected) != len(actual):
            yield f"{path}: {_shorten(expected)} in PyTorch, {_shorten(actual)} in Flambeau"
            return
        for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(left, right, f"{path}[{position}]", tolerance, precision)
    elif not _same_leaf(expected, actual, tolerance, precision):
        yield f"{path}: {_shorten(expected)} in PyTorch, {_shorten(actual)} in Flambeau"


def _shorten(description: Any) -> str:
    text = repr(description)
    return text if len(text) <= 300 else text[:300] + "..."


def _same_leaf(expected: Any, actual: Any, tolerance: float, precision: float) -> bool:
    """Whether two plain values agree; with a tolerance of zero, the sign of a zero counts too."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, complex):
        return all(
            _same_leaf(left, right, tolerance, precision)
            for left, right in ((expected.real, actual.real), (expected.imag, actual.imag))
        )
    if isinstance(expected, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        if tolerance == 0:
            return expected == actual and math.copysign(1, expected) == math.copysign(1, actual)
        relative, absolute = tolerance * precision, tolerance * min(precision, 1.0)
        return expected == actual or math.isclose(expected, actual, rel_tol=relative, abs_tol=absolute)
    return bool(expected == actual)


def _outcomes(observed: Any) -> Iterator[_Outcome]:
    """The outcomes anywhere inside an observation."""
    if isinstance(observed, _Outcome):
        yield observed
    if isinstance(observed, dict):
        observed = list(observed.values())
    if isinstance(observed, (list, tuple)):
        for item in observed:
            yield from _outcomes(item)


def _home(scenario: Scenario) -> str:
    """The name of a scenario."""
    if isinstance(scenario, functools.partial):
        return _home(scenario.args[0] if scenario.func is _call else scenario.func)
    return scenario.__name__


def _observed(scenario: Scenario, module: Any, args: tuple[Any, ...]) -> tuple[Any, Any, set[str]]:
    """What a scenario returns, its description, and the beginnings of the warnings that it did not look at itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.manual_seed(0)
        module.set_warn_always(True)  # else a test would depend on those before it
        if module is pytorch:
            pytorch.storage._set_always_warn_typed_storage_removal(True)
        try:
            result = scenario(module, *args)
            description = describe(result)
        finally:
            module.set_warn_always(False)
    heads = {head(each) for each in caught if _counts(each)}
    if older_than(2, 13):
        heads -= WARNED_SINCE_2_13
    return result, description, heads - OWN_REASONS.keys() - OWN_REASONS_IN.get(_home(scenario), {}).keys()


def _counts(warning: warnings.WarningMessage) -> bool:
    """Python and NumPy warn of their own ways: those warnings are nobody's behaviour."""
    return issubclass(warning.category, (UserWarning, FutureWarning))


def head(warning: warnings.WarningMessage) -> str:
    """By what a warning is known: its category and its first words."""
    return f"{warning.category.__name__}: {' '.join(str(warning.message).split()[:4])}"


def compare(scenario: Scenario, *args: Any, tolerance: float = 1e-6) -> None:
    """Fail where `scenario` observes something else under Flambeau than under PyTorch."""
    if pytorch is None:
        _observed(scenario, flambeau, args)
        pytest.skip("ran under Flambeau alone: there is no PyTorch to compare with")
    in_pytorch, expected, warned_there = _observed(scenario, pytorch, args)
    in_flambeau, actual, warned_here = _observed(scenario, flambeau, args)
    other_words = [result.message for result in _outcomes(in_pytorch) if result.lacks_phrases]
    assert not other_words, "the test looks for other words than PyTorch's:\n" + "\n".join(other_words)
    found = list(differences(expected, actual, tolerance=tolerance))
    found += [f"PyTorch warns: {each}" for each in sorted(warned_there - warned_here)]
    found += [f"Flambeau warns: {each}" for each in sorted(warned_here - warned_there)]
    errors = {result.message for result in _outcomes(in_flambeau)} - {"no error"}
    assert not found, "\n".join(
        [*found[:20], *(f"Flambeau said: {_shorten(message)}" for message in sorted(errors)[:5])]
    )


@overload
def differential(scenario: Scenario) -> Scenario: ...


@overload
def differential(*, tolerance: float) -> Callable[[Scenario], Scenario]: ...


def differential(scenario: Scenario | None = None, *, tolerance: float = 1e-6) -> Any:
    """Turn `def test_x(T, ...)` into a test that compares both frameworks; further arguments may be parametrized.

    `@differential(tolerance=0.0)` asks for the same bits.
    """
    if scenario is None:
        return functools.partial(_as_test, tolerance=tolerance)
    return _as_test(scenario, tolerance)


def _as_test(scenario: Scenario, tolerance: float) -> Scenario:
    parameters = list(inspect.signature(scenario).parameters.values())[1:]

    @functools.wraps(scenario)
    def test(**arguments: Any) -> None:
        compare(functools.partial(_call, scenario, arguments), tolerance=tolerance)

    test.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    del test.__wrapped__  # pytest would ask for a fixture named T
    return test


def _call(scenario: Scenario, arguments: dict[str, Any], module: Any) -> Any:
    return scenario(module, **arguments)


raises = pytest.raises
