"""The statistics of a pool as a table for people, with the rows and columns of PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping

_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Requested memory", "requested_bytes", True),
    ("GPU reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocs", "active", False),
    ("GPU reserved segments", "segment", False),
    ("Non-releasable allocs", "inactive_split", False),
)
_SIDES = (("", "all"), ("from large pool", "large_pool"), ("from small pool", "small_pool"))
_COLUMNS = (("Cur Usage", "current"), ("Peak Usage", "peak"), ("Tot Alloc", "allocated"), ("Tot Freed", "freed"))
_WIDTH = 75


def _amount(number: int, of_bytes: bool) -> str:
    units = ["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"] if of_bytes else [" ", "K", "M"]
    most, step = (768 << 10, 1024) if of_bytes else (750_000, 1000)
    while len(units) > 1 and number >= most:
        number //= step
        units.pop(0)
    return f" {number:6d} {units[0]} " if of_bytes else f" {number:7d} {units[0]}  "


def _row(name: str, values: list[str]) -> str:
    return f"| {name:<21} |" + "|".join(values) + "|"


def summary(table: Mapping[str, int], abbreviated: bool) -> str:
    """The table: what is in use, its peak, all that was taken and given back; by sizes too unless abbreviated."""
    line, double = f"|{'-' * _WIDTH}|", f"|{'=' * _WIDTH}|"
    failures = f"{'CUDA OOMs: ':>23}{table['num_ooms']:<13d}"
    retries = f"{'cudaMalloc retries: ':>28}{table['num_alloc_retries']:<10d}"
    text = [
        double,
        f"|{'PyTorch CUDA memory summary, device ID 0':>58}{'':17}|",
        line,
        f"|{failures}|{retries}|",
        double,
        _row("       Metric", [f" {title:<11}" for title, _ in _COLUMNS]),
    ]
    for title, name, of_bytes in _ROWS:
        text.append(line)
        for side_title, side in _SIDES[:1] if abbreviated else _SIDES:
            values = [_amount(table[f"{name}.{side}.{key}"], of_bytes) for _, key in _COLUMNS]
            text.append(_row(f"{side_title:>21}" if side_title else title, values))
    for title, name in (("Oversize allocations", "allocations"), ("Oversize GPU segments", "segments")):
        values = [_amount(table[f"oversize_{name}.{key}"], False) for _, key in _COLUMNS]
        text += [line, _row(title, values)]
    return "\n".join([*text, double]) + "\n"
