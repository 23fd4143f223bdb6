"""Tests of exported models, under the names of `torch.onnx.testing`."""

from __future__ import annotations

from typing import Any, Literal

from ..testing import assert_close
from .verification import results_of_both

__all__ = ["assert_onnx_program"]


def assert_onnx_program(
    program: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    strategy: str | None = "TorchExportNonStrictStrategy",
    backend: Literal["onnxruntime", "reference"] = "onnxruntime",
) -> None:
    """Raise an AssertionError unless the exported model gives the results of the program, run by one of two ways."""
    runs = {"onnxruntime": program, "reference": program.call_reference}
    for ours, exported in zip(*results_of_both(program, args, kwargs, runs[backend]), strict=True):
        assert_close(exported, ours, rtol=rtol, atol=atol, equal_nan=True, check_device=False)
