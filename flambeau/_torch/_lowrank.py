"""Decompositions of low rank under the name of their module, `torch._lowrank`."""

from __future__ import annotations

from flambeau import pca_lowrank, svd_lowrank

__all__ = ["pca_lowrank", "svd_lowrank"]
