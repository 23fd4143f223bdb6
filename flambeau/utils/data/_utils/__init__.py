"""What loaders and their workers are made of."""

from __future__ import annotations

MP_STATUS_CHECK_INTERVAL = 5.0
"""Seconds that a worker gets to finish by itself, and between two looks at whether the main process still lives."""
