"""Modules that are made of graphs: not built yet. The class is a module, on which those who inherit from it rely."""

from __future__ import annotations

from .._core.names.absent import absent_class
from ..nn.modules.module import Module

GraphModule = absent_class("torch.fx.GraphModule", "graph capture (fx) is not built yet", (Module,))
