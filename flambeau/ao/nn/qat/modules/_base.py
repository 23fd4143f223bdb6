"""What modules for training with rounding share."""

from __future__ import annotations

from typing import Any


def copied_layer(cls: Any, mod: Any, layers: tuple[type, ...]) -> Any:
    """The layer whose parameters a module takes over: `mod`, or the first of some in a row; checked."""
    if type(mod) is not cls._FLOAT_MODULE and type(mod) not in getattr(cls, "_FURTHER", ()):
        raise AssertionError(f" qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    return mod if isinstance(mod, layers) else mod[0]
