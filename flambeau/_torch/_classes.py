"""`torch._classes`: classes of libraries' compiled parts, of which there are none."""

from __future__ import annotations

from flambeau._torch import classes

__all__ = ["classes"]
