"""Errors of such processes."""

from __future__ import annotations

from ...._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "distributed is not built yet",
        functions="record",
        classes="ProcessFailure",
    )
    .parts()
)


class ChildFailedError(Exception):
    """A process that was started has failed."""
