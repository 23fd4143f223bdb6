"""Tests of exported models, under the names of `torch.onnx.testing`."""

from __future__ import annotations

from typing import Any

from ..testing import assert_close
from ..utils._pytree import tree_leaves

__all__ = ["assert_onnx_program"]


def assert_onnx_program(
    program: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    strategy: str | None = "TorchExportNonStrictStrategy",
) -> None:
    """Raise an AssertionError unless the exported model gives the results of the program."""
    if args is None and kwargs is None:
        if program.exported_program.example_inputs is None:
            raise ValueError("No example inputs provided and the program has none: give args or kwargs")
        args, kwargs = program.exported_program.example_inputs
    expected = tree_leaves(program.exported_program.module()(*(args or ()), **(kwargs or {})))
    for ours, exported in zip(expected, program(*(args or ()), **(kwargs or {})), strict=True):
        assert_close(exported, ours, rtol=rtol, atol=atol, equal_nan=True, check_device=False)
