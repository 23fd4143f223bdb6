"""`torch._dynamo.external_utils`."""

from __future__ import annotations

from flambeau.compiler._marks import is_compiling

__all__ = ["is_compiling"]
