"""Where a meeting is, under the names of `torch.distributed.elastic.rendezvous.utils`."""

from __future__ import annotations

import re

__all__ = ["parse_rendezvous_endpoint"]

_MOST = 2**16


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """The host and the port of "host:port", "host", "[IPv6]:port"; nothing means this machine."""
    text = (endpoint or "").strip()
    if not text:
        return "localhost", default_port
    host, port = text, default_port
    if text.rpartition(":")[2].isdigit() or text.endswith(":") or text.count(":") == 1:
        host, _, number = text.rpartition(":")
        if not number.isdigit() or int(number) >= _MOST:
            raise ValueError(
                f"The port number of the rendezvous endpoint '{text}' must be an integer between 0 and {_MOST}."
            )
        port = int(number)
    if not re.match(r"^[\w\.:-]+$", host.strip("[]")):
        raise ValueError(f"The hostname of the rendezvous endpoint '{text}' must be a name or an address.")
    return host.strip("[]"), port
