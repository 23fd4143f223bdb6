"""What the operating system says about a process."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_uninterruptible_state", "read_proc_state"]


def read_proc_state(pid: int) -> str | None:
    """The letter that Linux has for the state of a process: "R" runs, "S" sleeps; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[0]


def is_uninterruptible_state(state: str | None) -> bool:
    """Whether a process in this state cannot be ended: it waits for a device."""
    return state == "D"
