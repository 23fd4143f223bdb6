"""Capture: run a call, and write down its ops (`ops.py`, `recorder.py`), what its Python reads (`watch.py`,
`guards.py`) and what its Python changes (`mutations.py`, `new_objects.py`). `breaks/` splits a function at its graph
breaks. `trace.py` writes ops down for `export`, ONNX and `make_fx`; `operators.py` says which operators of PyTorch they
are. All recorders number tensors by `values.py`.
"""

from __future__ import annotations

from ..program.items import Call, Value
from .ops import Capture

__all__ = ["Call", "Capture", "Value"]
