"""What autograd's compiled part has, under the names of `torch._C._autograd`."""

from __future__ import annotations

from flambeau._core.names.absent import Table
from flambeau._core.node import SavedTensor
from flambeau.profiler._marks import kineto_available

__all__ = ["SavedTensor", "kineto_available"]

__getattr__, __dir__ = (
    Table(__name__)
    .returning(lambda: False, functions="_profiler_enabled")
    .returning(lambda: None, functions="_kineto_step _clear_callbacks _set_empty_test_observer")
    .parts()
)
