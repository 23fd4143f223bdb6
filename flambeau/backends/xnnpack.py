"""A library of layers for phones, which Flambeau does not call."""

from __future__ import annotations

enabled = False
