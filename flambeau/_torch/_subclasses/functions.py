"""What a function that reaches `__torch_function__` is, by its name."""

from __future__ import annotations

from flambeau._dispatch.public import catalogue

_OPERATORS = frozenset({"and", "floordiv", "invert", "lshift", "mod", "or", "rshift", "rtruediv", "truediv", "xor"})
"""Elementwise operators of Python's whose functions have other names."""


def is_elementwise(name: str) -> bool:
    """Whether a function gives each element its own: `add`, `add_`, `__iadd__`, `gelu`."""
    plain = name[3:-2] if changes_its_first(name) and name.startswith("__") else name.strip("_")
    plain = plain.removeprefix("special_")
    spaces = ("", "nn.functional", "special")
    homes = (catalogue.FUNCTIONS[space].get(each) for space in spaces for each in (name, plain))
    return plain in _OPERATORS or any(home is not None and home.startswith("pointwise.") for home in homes)


def changes_its_first(name: str) -> bool:
    """Whether a function changes its first argument: `add_`, `__iadd__`."""
    return name.startswith("__i") and name != "__invert__" if name.endswith("__") else name.endswith("_")
