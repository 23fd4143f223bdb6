"""Models cut into stages, under the names of `torch.distributed.pipelining`."""

from __future__ import annotations

from ..._core.names.absent import Table

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS",
    "SplitPoint", "build_stage", "pipe_split", "pipeline",
]  # fmt: skip

__getattr__, __dir__ = (
    Table(__name__)
    .submodules("microbatch schedules stage")
    .elsewhere("Pipe SplitPoint pipe_split pipeline", "distributed.pipelining._splitting")
    .elsewhere("PipelineStage build_stage", "distributed.pipelining.stage")
    .elsewhere(
        "Schedule1F1B ScheduleGPipe ScheduleInterleaved1F1B ScheduleLoopedBFS ScheduleDualPipeV "
        "ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble",
        "distributed.pipelining.schedules",
    )
    .parts()
)
