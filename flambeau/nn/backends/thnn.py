"""The functions behind layers under their oldest name: there are none in it any more, in PyTorch neither."""

from __future__ import annotations


def _get_thnn_function_backend() -> None:
    """Nothing: layers call their functions directly."""
