"""`import flambeau.as_torch` as a program's first import: from then on `import torch` gives Flambeau."""

from __future__ import annotations

from ._torch._stand_in import stand_in_for_torch

stand_in_for_torch()
