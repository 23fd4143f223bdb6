"""Where in a model an error was raised: `encoder.3.fc1`, the path that the user would write."""

from __future__ import annotations

from typing import Any

_TRAIL = "_module_trail"


class _Trail:
    """The innermost module that an error left, the outermost so far, and the path between them."""

    __slots__ = ("inner", "note", "outer", "path")

    def __init__(self, module: Any) -> None:
        self.inner = self.outer = module
        self.path = ""
        self.note = f"in module {type(module).__name__}"

    def lengthen(self, module: Any) -> None:
        """Let the path begin at `module`, if the outermost one so far is a member of it."""
        for path, member in module.named_modules():
            if member is self.outer and path:
                self.outer = module
                self.path = f"{path}.{self.path}" if self.path else path
                self.note = f"in module `{self.path}` ({type(self.inner).__name__}) of {type(module).__name__}"
                return


def note_path(error: Exception, module: Any) -> None:
    """Say in the notes of an error, which a traceback shows, where in `module` it comes from.

    Each module around the first one lengthens the path: the note that stays is the one of the whole model.
    """
    state: dict[str, Any] = error.__dict__
    notes = state.setdefault("__notes__", [])
    trail = state.get(_TRAIL)
    if trail is None:
        trail = state[_TRAIL] = _Trail(module)
    else:
        if trail.note in notes:
            notes.remove(trail.note)
        trail.lengthen(module)
    notes.append(trail.note)
