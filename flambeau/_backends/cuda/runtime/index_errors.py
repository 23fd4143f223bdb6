"""What kernels find wrong: indices outside of what they index. It is raised when the host next waits for the device.

A kernel that looks at indices is given a place in memory that device and host share. If one is wrong it writes 1 there,
and the index; nothing stops, and no other kernel is harmed. Whose place it was, and the line of the program that called
for it, are known here.
"""

from __future__ import annotations

from typing import Any

from ...._core.process.caller import Place, calling_place, describe_place

PLACES = 4096


class Faults:
    """The places, which are used one after the other; `words` is an array of two numbers for each of them."""

    def __init__(self, words: Any) -> None:
        words[:] = 0
        self._words = words
        self._flags = words[:, 0]
        self._address: int = words.__array_interface__["data"][0]
        self._next = 0
        self._users: list[tuple[str, Place | None]] = [("", None)] * PLACES

    def place_for(self, op: str) -> int:
        """The address for a kernel of `op`."""
        number = self._next
        self._next = (number + 1) % PLACES
        if self._flags[number]:  # of a kernel that has run long ago
            self.report()
        self._users[number] = op, calling_place()
        return self._address + 16 * number

    def report(self) -> None:
        """Raise the first fault that was found, once it is known that the kernels have run."""
        if not self._flags.any():
            return
        number = int(self._flags.argmax())
        index = int(self._words[number, 1])
        self._words[:] = 0
        op, place = self._users[number]
        what = f"Target {index} is out of bounds." if "loss" in op else f"index {index} is out of bounds."
        raise IndexError(f"{what} A kernel of {op} on the GPU found it, called for at {describe_place(place)}.")
