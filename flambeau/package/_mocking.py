"""What stands in an archive for a module that was left out: it imports, and says so when it is used."""

from __future__ import annotations

MODULE = "_mock"

SOURCE = '''\
"""Stands for objects of modules that were left out of this archive."""


class MockedObject:
    def __new__(cls, *args, **kwargs):
        if not kwargs.get("_suppress_err"):
            raise NotImplementedError(f"Object '{cls.__name__}' was mocked out during packaging but it is being used")
        return super().__new__(cls)

    def __init__(self, name, _suppress_err):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self.__dict__['_name']})"

    def __getattr__(self, name):
        self._refuse(name)

    def __setattr__(self, name, value):
        self._refuse("__setattr__")

    def __call__(self, *args, **kwargs):
        self._refuse("__call__")

    def __getitem__(self, key):
        self._refuse("__getitem__")

    def __mro_entries__(self, bases):
        return ()

    def _refuse(self, use):
        name = self.__dict__["_name"]
        raise NotImplementedError(f"Object '{name}' was mocked out during packaging but it is being used in {use}")
'''

MOCKED = """\
from _mock import MockedObject


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return MockedObject(__name__ + "." + name, _suppress_err=True)
"""
