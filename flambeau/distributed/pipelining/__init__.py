"""Models cut into stages, under the names of `torch.distributed.pipelining`."""

from __future__ import annotations

from ..._core.names.absent import Table

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "SplitPoint", "build_stage", "pipe_split", "pipeline"
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("microbatch schedules stage")
    .elsewhere("Pipe SplitPoint pipe_split pipeline", "distributed.pipelining._splitting")
    .elsewhere("PipelineStage build_stage", "distributed.pipelining.stage")
    .elsewhere("Schedule1F1B ScheduleGPipe", "distributed.pipelining.schedules")
    .absent(
        "schedules with several stages on a process are not built",
        classes="ScheduleDualPipeV ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble ScheduleLoopedBFS "
        "ScheduleZBVZeroBubble",
    )
    .parts()
)
