"""Models cut into stages, under the names of `torch.distributed.pipelining`: not built yet."""

from __future__ import annotations

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="pipeline pipe_split build_stage",
        classes="Pipe PipelineStage Schedule1F1B ScheduleGPipe SplitPoint",
    )
    .parts()
)
