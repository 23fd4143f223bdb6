"""The program of a captured call: its ops in order, on values, and what else happens between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ..._core.backend import Backend
from ..._core.kind import Kind
from ..._core.process.caller import Place
from ..._core.tensor import Tensor
from ..._dispatch.op import Op


@dataclass(frozen=True)
class Value:
    """An array of the program."""

    number: int


@dataclass
class Call:
    """One op: values in the place of tensors."""

    op: Op
    args: tuple[Any, ...]
    results: Any
    examples: tuple[Any, ...]
    """The arguments as they were: tensors tell kinds and shapes."""
    made: Any
    """The results as they were."""
    place: Place | None = None
    """The user's line that ran it."""
    position: int = -1
    """Which of the recorded items it is; it stays that if its arguments are given other names."""

    @property
    def name(self) -> str:
        """What is done, in words."""
        return self.op.name


@dataclass(kw_only=True)
class Rewritten(Call):
    """A call in place of others."""

    run: Callable[..., Any]
    """What computes the arrays of its results."""
    instead_of: Sequence[Call] = ()
    """The calls in whose place it is; none: one with its op."""

    @property
    def name(self) -> str:
        return ", ".join([each.name for each in self.instead_of]) or self.op.name


@dataclass
class Outside:
    """Python that runs as it stands, such as the step of an optimizer."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class SetGrad:
    """`tensor.grad` becomes a value, or None."""

    tensor: Tensor
    value: Value | None
    kind: Any


@dataclass
class Read:
    """Python looked at elements: what follows holds only where it finds the same. All reads stand before any effect."""

    call: Call
    """The call that read; its `made` is what it found."""
    place: str
    breaks: dict[CodeType, set[int]] = field(default_factory=dict)
    """Where that is in the functions that were in the midst of a call."""
    behind_all: bool = False
    """Whether every op before it has to come before it, as where it depends on random numbers that were drawn. Else it
    needs no more than the ops that it depends on."""


@dataclass
class DeviceSegment:
    """Calls that a device does one after the other, without Python."""

    calls: list[Call]
    inputs: list[Value]
    results: list[Value]
    """What is needed later."""
    written: list[int]
    """The positions of the inputs whose memory changes."""
    backend: Backend


Item = Call | Outside | SetGrad | Read | DeviceSegment


@dataclass
class Program:
    """What a call does."""

    items: list[Item] = field(default_factory=list)
    inputs: dict[int, Tensor] = field(default_factory=dict)
    """The values that were there before, by number."""


def is_usable(kind: Kind) -> bool:
    """Whether programs can have tensors of a kind."""
    known = kind.is_cpu or kind.backend.is_compiled_for
    return known and not kind.indirect and kind.plain is kind


def values_in(tree: Any) -> list[Value]:
    """Every value in arguments or results."""
    kind = type(tree)
    if kind is Value:
        return [tree]
    found: list[Value] = []
    if kind is tuple or kind is list or kind is dict:
        for each in tree.values() if kind is dict else tree:
            inner = type(each)
            if inner is Value:
                found.append(each)
            elif inner is tuple or inner is list or inner is dict:
                found += values_in(each)
    return found


def uses(item: Item) -> list[Value]:
    """The values that an item reads."""
    if isinstance(item, Call):
        return values_in(item.args)
    if type(item) is Read:
        return values_in(item.call.args)
    if type(item) is DeviceSegment:
        return item.inputs
    return [item.value] if type(item) is SetGrad and item.value is not None else []
