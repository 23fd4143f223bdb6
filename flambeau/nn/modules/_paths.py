"""What an error that leaves a module says of it: the path that the user would write, and the lines that are the "
"user's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.process.tracebacks import leave_out_library
from ..._core.tensor import Tensor

_TRAIL = "_module_trail"
_CONVERSIONS = {"float16": "half", "bfloat16": "bfloat16", "float32": "float", "float64": "double"}


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


def note_path(error: Exception, module: Any, args: Sequence[Any] = ()) -> None:
    """Say in the notes of an error, which a traceback shows, where in `module` it comes from.

    Each module around the first one lengthens the path: the note that stays is the one of the whole model. `args` are
    what the module was called with.
    """
    leave_out_library(error)
    state: dict[str, Any] = error.__dict__
    notes = state.setdefault("__notes__", [])
    trail = state.get(_TRAIL)
    if trail is None:
        trail = state[_TRAIL] = _Trail(module)
        notes.extend(_dtype_advice(error, module, args))
    else:
        if trail.note in notes:
            notes.remove(trail.note)
        trail.lengthen(module)
    notes.append(trail.note)


def _dtype_advice(error: Exception, module: Any, args: Sequence[Any]) -> list[str]:
    """How to convert an input whose dtype is not the one of the module's parameters, if the error may be about that."""
    if "type" not in str(error):
        return []
    own = next((each.dtype for each in module.parameters() if each.dtype.is_floating_point), None)
    given = next((each.dtype for each in args if isinstance(each, Tensor) and each.dtype.is_floating_point), None)
    if own is None or given is None or own is given or not {str(own)[6:], str(given)[6:]} <= _CONVERSIONS.keys():
        return []
    to_own, to_given = _CONVERSIONS[str(own)[6:]], _CONVERSIONS[str(given)[6:]]
    return [
        (
            f"The input is {given}, the parameters are {own}: pass input.{to_own}(), or convert the model, "
            f"model.{to_given}()"
        )
    ]
