"""Filters of guards, for `options={"guard_filter_fn": ...}`: which of a program's checks somebody wants to keep.

They are given entries that say what a guard is about, and answer for each whether it stays. To leave a check out is a
permission that is never made use of here: a program would be run where it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.nn.parameter import Parameter

_OF_TENSORS = "TENSOR_MATCH"
_PORTABLE = ("SHAPE_ENV", "GLOBAL_STATE")


def skip_all_guards_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep no guard."""
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that are not about globals."""
    return [not each.is_global for each in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that are not about the modules of `torch.nn`."""
    return [not each.orig_guard.source.is_unspecialized_builtin_nn_module() for each in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that are not about modules."""
    return [not each.orig_guard.source.is_unspecialized_nn_module() for each in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Sequence[Any], keep_parameters: bool = False) -> list[bool]:
    """Keep guards about tensors, and about parameters if asked to."""
    return [_is_of_tensor(each, keep_parameters) for each in guard_entries]


def keep_portable_guards_unsafe(guard_entries: Sequence[Any]) -> list[bool]:
    """Keep guards that mean something outside Python: about tensors, their sizes, and global modes."""
    return [_is_of_tensor(each, False) or each.guard_type in _PORTABLE for each in guard_entries]


def _is_of_tensor(entry: Any, with_parameters: bool) -> bool:
    return entry.guard_type == _OF_TENSORS and (with_parameters or not isinstance(entry.value, Parameter))
