"""Classes of a program's own as TorchScript: named tuples, enumerations, classes with methods, contexts."""

from __future__ import annotations

import enum
import textwrap
from types import FunctionType
from typing import Any

from .objects import GRADIENTS, hints_of
from .translate import Home, Translation, Unwritable, type_text

_CONTEXT = """\
class {name}:
  before : bool
  def __init__(self: __torch__.{name}) -> NoneType:
    self.before = False
    return None
  def __enter__(self: __torch__.{name}) -> NoneType:
    self.before = torch.is_grad_enabled()
    torch.set_grad_enabled({enabled})
    return None
  def __exit__(self: __torch__.{name}, kind: Any, error: Any, trace: Any) -> NoneType:
    torch.set_grad_enabled(self.before)
    return None
"""


def definition(cls: type, name: str, home: Home) -> str:
    """The text of a class under a name."""
    if cls in GRADIENTS:
        return _CONTEXT.format(name=name, enabled=GRADIENTS[cls])
    if issubclass(cls, enum.Enum):
        return _enumeration(cls, name)
    try:
        hints = hints_of(cls)
    except (OSError, TypeError, NameError) as error:
        raise Unwritable(f"{cls.__qualname__} cannot be written, its source or its annotations: {error}") from None
    declared = [f"  {each} : {_type_text(hint, cls, home)}" for each, hint in hints.items()]
    if hasattr(cls, "_fields"):
        return "\n".join([f"class {name}(NamedTuple):", *declared]) + "\n"
    if cls.__bases__ != (object,):
        raise Unwritable(f"{cls.__qualname__} inherits from another class: TorchScript's classes do not")
    lines = [f"class {name}:", *declared]
    methods = [
        Translation(function, None, home, cls).text(title, f"__torch__.{name}")
        for title, function in vars(cls).items()
        if isinstance(function, FunctionType) and not hasattr(function, "_torchscript_modifier")
    ]
    return "\n".join(lines) + "\n" + "".join(textwrap.indent(each, "  ") for each in methods)


def _enumeration(cls: type[enum.Enum], name: str) -> str:
    members = [f"  {each.name} = {each.value!r}" for each in cls]
    if len({type(each.value) for each in cls}) != 1 or not isinstance(next(iter(cls)).value, (int, float, str)):
        raise Unwritable(f"the values of {cls.__qualname__} must all be integers, all floats or all strings")
    return "\n".join([f"class {name}(Enum):", *members]) + "\n"


def _type_text(hint: Any, cls: type, home: Home) -> str:
    try:
        return type_text(hint, home)
    except Unwritable:
        raise
    except (ValueError, RuntimeError, AttributeError, TypeError):
        raise Unwritable(f"{cls.__qualname__}: {hint} is no type of TorchScript") from None
