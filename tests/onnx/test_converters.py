"""Every converter: an exported call, run by onnxruntime and read back, beside the call itself."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from flambeau.compiler.capture.trace import Trace, trace_call
from flambeau.onnx._converters import CONVERTERS, elementwise, has_converter

from . import cases, layer_cases, runtime

FAMILIES = cases.FAMILIES | layer_cases.FAMILIES

UNSEEN = {
    "derivatives and other ops' insides": "average_running_statistics copied_like copy div_trunc_half fill_number "
    "fill_tensor max_pool norm_along only_where reshape_alias restride wide_product zero",
    "other devices": "copy_across to_device",
    "nodes that the user writes: see test_export.py": "onnx_node",
    "refused, with the reason": "complex polar view_as_complex view_as_real view_dtype conjugate",
}
"""Converters that no call of a user's reaches alone."""


def compare(function: Callable[..., Any], inputs: tuple[Any, ...], read: bool = True) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program: Any = flambeau.onnx.export(function, tuple(each.clone() for each in inputs), do_constant_folding=False)
        expected = function(*[each.clone() for each in inputs])
        runtime.check(runtime.run(program.model_proto, inputs), expected)
        if read:
            runtime.check(runtime.read(program.model_proto, inputs), expected)


def described(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function).strip()[:200]
    except (OSError, TypeError):
        return str(function)


def failure_of(function: Callable[..., Any], inputs: tuple[Any, ...]) -> str | None:
    try:
        compare(function, inputs)
    except Exception as error:
        return f"{described(function)}\n    {type(error).__name__}: {str(error)[:400]}"
    return None


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    failures = [failure for each in FAMILIES[family] if (failure := failure_of(*each))]
    assert not failures, "\n".join(failures)


def test_every_converter_is_exercised() -> None:
    seen: set[str] = set()
    every = [each for family in FAMILIES.values() for each in family] + layer_cases.ANTIALIASED + layer_cases.DRAWING
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, inputs in every:
            copies = [each.clone() for each in inputs]
            run = trace_call(function, copies, {}, Trace(has_converter), copies)
            seen.update(call.op.name for call in run.trace.calls)
    assert set(CONVERTERS) - seen == set(" ".join(UNSEEN.values()).split())


def test_every_step_is_exercised(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()

    def noted(name: str, step: elementwise.Step) -> elementwise.Step:
        def run(*args: Any) -> Any:
            seen.add(name)
            return step(*args)

        return run

    steps = {name: noted(name, step) for name, step in elementwise.STEPS.items()}
    monkeypatch.setattr(elementwise, "STEPS", steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, inputs in FAMILIES["pointwise"]:
            flambeau.onnx.export(function, tuple(each.clone() for each in inputs))
    assert sorted(set(steps) - seen) == []
