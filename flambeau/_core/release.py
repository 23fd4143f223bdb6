"""The version of this package."""

from __future__ import annotations

RELEASE = "0.3.0"
