"""Event files for TensorBoard, written without it: `SummaryWriter`."""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
