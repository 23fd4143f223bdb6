"""PyTorch's calls of a C++ compiler: there are none here."""

from __future__ import annotations

from flambeau._core.names.absent import Table

__getattr__, __dir__ = Table(__name__).absent("nothing is compiled as C++", functions="get_cpp_compiler").parts()
