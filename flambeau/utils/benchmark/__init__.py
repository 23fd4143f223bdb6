"""Timing small pieces of code, under the names of `torch.utils.benchmark`."""

from __future__ import annotations

from ..._core.names.absent import Table
from ._measurement import Measurement, TaskSpec, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from ._timer import Language, Timer, timer

__all__ = [
    "Language", "Measurement", "TaskSpec", "Timer", "select_unit", "set_torch_threads", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .elsewhere("Colorize Compare ordered_unique", "utils.benchmark._compare")
    .elsewhere("CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts", "utils.benchmark._counts")
    .elsewhere("FuzzedParameter FuzzedSparseTensor FuzzedTensor Fuzzer ParameterAlias", "utils.benchmark._fuzzer")
    .parts()
)
