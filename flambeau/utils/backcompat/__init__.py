"""Warnings about very old programs, under the names of `torch.utils.backcompat`."""

from __future__ import annotations


class Warning:
    """A warning that can be switched on; the behaviours that they are about are gone."""

    def __init__(self) -> None:
        self.enabled = False


broadcast_warning = Warning()
keepdim_warning = Warning()
