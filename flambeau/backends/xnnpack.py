"""A library of layers for phones, which Flambeau does not call."""

from __future__ import annotations

from ._modules import settings_class

enabled = False

settings_class("XNNPACKEngine", __name__, "enabled")
