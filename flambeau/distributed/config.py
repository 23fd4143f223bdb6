"""Settings, under the names of `torch.distributed.config`; both are off, and neither changes what is computed."""

from __future__ import annotations

__all__ = ["compile_on_one_rank", "use_torchcomms"]

compile_on_one_rank = False
"""Whether one process compiles for all: here each has the programs of all on disk."""
use_torchcomms = False
"""Whether another library sends messages: there is none here."""
