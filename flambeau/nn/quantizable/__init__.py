"""The older place of `torch.ao.nn.quantizable`."""

from __future__ import annotations

from ..._core.names.older_places import stand_for

stand_for(__name__, "flambeau.ao.nn.quantizable")
