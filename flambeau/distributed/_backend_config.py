"""Which backend works on which device, and groups that become smaller."""

from __future__ import annotations

from typing import Any, NewType

from ._world import ProcessGroup, get_backend, group_of

__all__ = ["BackendConfig", "GroupName", "shrink_group"]

GroupName = NewType("GroupName", str)
_DEVICES = {"gloo": ("cpu", "cuda"), "nccl": ("cuda",), "mpi": ("cpu", "cuda"), "ucc": ("cpu", "cuda")}


class BackendConfig:
    """The backend of each device: of a name, or of "device:name" with commas between.

    >>> from flambeau.distributed.distributed_c10d import BackendConfig
    >>> BackendConfig("cpu:gloo,cuda:nccl").get_device_backend_map()
    {'cpu': 'gloo', 'cuda': 'nccl'}
    """

    def __init__(self, backend: str) -> None:
        text = str(backend).lower()
        if text == "undefined":
            self.device_backend_map = {"cpu": "gloo"}
        elif ":" in text:
            pairs = [each.split(":") for each in text.split(",")]
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError(f"Invalid device:backend pairing: '{text}'")
            self.device_backend_map = {pair[0]: pair[1] for pair in pairs}
            if len(self.device_backend_map) != len(pairs):
                raise ValueError(f"Duplicate device type in backend string: {text}")
        else:
            self.device_backend_map = dict.fromkeys(_DEVICES.get(text, ("cpu",)), text)

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each device."""
        return self.device_backend_map


def shrink_group(
    ranks_to_exclude: list[int], group: ProcessGroup | None = None, shrink_flags: int = 0, pg_options: Any = None
) -> ProcessGroup:
    """Refused, as by all of PyTorch's backends for the CPU."""
    own = group_of(group)
    wrong = [rank for rank in ranks_to_exclude if not 0 <= rank < own.size()]
    if not ranks_to_exclude or wrong or len(set(ranks_to_exclude)) < len(ranks_to_exclude):
        raise ValueError(f"ranks_to_exclude must name ranks of the group, each once: {ranks_to_exclude}")
    raise TypeError(f"The process group's backend {get_backend(own)} does not support shrinking")
