"""What profiles consist of, under the names of `torch.autograd.profiler_util`: not built yet."""

from __future__ import annotations

from .._core.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "profiles are not built yet",
        classes="EventList EventMetadata FormattedTimesMixin FunctionEvent FunctionEventAvg Interval Kernel "
        "MemRecordsAcc StringTable",
    )
    .parts()
)
