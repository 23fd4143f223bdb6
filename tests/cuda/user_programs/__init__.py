"""Programs as users write them, each of which runs under PyTorch and under Flambeau."""

from . import inference, memory, mixed, processes, sparse, state, streams, training
from .registry import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program", "inference", "memory", "mixed", "processes", "sparse", "state", "streams", "training"]
