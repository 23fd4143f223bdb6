"""What `import torch` finds in processes that a program under `flambeau run` starts."""

from __future__ import annotations

from flambeau import stand_in_for_torch

__flambeau__ = True

if __name__ == "torch":
    stand_in_for_torch()
