"""Docstrings of classes and functions that take sections over from another one."""

from __future__ import annotations

import inspect
from typing import Any

import flambeau
from flambeau._core.text.inherited_docs import documented_like


class Model:
    """Counts sheep.

    It counts each one once.

    Args:
        flock (int): how many sheep there are. Default: `1`.
        aloud (bool): whether to say the numbers.
        fast (bool): whether to hurry. Default: `False`.

    Raises:
        ValueError: there are fewer than none.

    Example:
        >>> Model(3)
    """

    def __init__(self, flock: int = 1, aloud: bool = False, fast: bool = False) -> None:
        self.flock = flock


@documented_like(Model)
class Goats(Model):
    """Counts goats.

    Args:
        flock (int): how many goats there are. Default: `2`.

    Attributes:
        flock (int): as it was given

    Example:
        >>> Goats()
    """

    def __init__(self, aloud: bool, flock: int = 2) -> None:
        super().__init__(flock, aloud)


COMPLETED = """Counts goats.

It counts each one once.

Args:
    aloud (bool): whether to say the numbers.
    flock (int): how many goats there are. Default: `2`.

Raises:
    ValueError: there are fewer than none.

Attributes:
    flock (int): as it was given

Example:
    >>> Goats()"""


def test_sections_and_parameters_that_a_class_lacks() -> None:
    assert inspect.getdoc(Goats) == COMPLETED
    assert Goats(aloud=True).__doc__ == COMPLETED


def test_a_subclass_says_nothing_itself() -> None:
    class Kids(Goats):
        pass

    assert Kids.__doc__ is None


def test_a_function_like_a_class() -> None:
    @documented_like(Model)
    def count(fast: bool) -> int:
        """Counts once.

        Quickly.
        """
        return int(fast)

    assert count.__doc__ == (
        "Counts once.\n\nQuickly.\n\nArgs:\n    fast (bool): whether to hurry. Default: `False`.\n\n"
        "Raises:\n    ValueError: there are fewer than none."
    )


def test_without_docstrings() -> None:
    def bare(flock: int) -> int:
        return flock

    assert documented_like(Model)(bare).__doc__ is None


def test_layers_in_more_dimensions() -> None:
    documented: list[Any] = [flambeau.nn.Conv3d, flambeau.nn.LazyConvTranspose2d, flambeau.nn.MaxPool2d]
    for layer in documented:
        doc = inspect.getdoc(layer) or ""
        for name in inspect.signature(layer).parameters:
            assert f"\n    {name} (" in doc, (layer, name)
