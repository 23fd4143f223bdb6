"""Writing a program as Python source: straight on, on arrays, with nothing left to decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._core.process.caller import GENERATED
from .._core.tensor import Tensor, View
from .._dispatch.composite import Composite
from .._dispatch.dispatch import Primitive
from .._dispatch.elementwise import Elementwise
from .._dispatch.factory import Factory
from .._dispatch.gradients.fused_derivatives import Derivative
from ._lower import lowered
from ._program import Call, Item, Outside, Read, SetGrad, Value, uses, values_in
from ._reads import differs

_PURE = (Primitive, Elementwise, Composite, Factory, Derivative)


class Source:
    """Lines of a function, and the constants that they name."""

    def __init__(self, constants: dict[str, Any] | None = None, tensors: dict[int, str] | None = None) -> None:
        self.lines: list[str] = []
        self.tensors = tensors or {}
        """Where the tensors are that were there before, by their identity."""
        self.constants: dict[str, Any] = {} if constants is None else dict(constants)
        self.constants.update(Tensor=Tensor, View=View, new=Tensor._from_parts, ndarray=np.ndarray, asarray=np.asarray)

    def constant(self, value: Any) -> str:
        """A name for a value."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def expression(self, tree: Any) -> str:
        """Source for arguments or results that hold values."""
        if type(tree) is Value:
            return f"v{tree.number}"
        if type(tree) is tuple and any(values_in(tree)):
            return f"({''.join([f'{self.expression(each)}, ' for each in tree])})"
        if type(tree) is list:
            return f"[{', '.join([self.expression(each) for each in tree])}]"
        if tree is None or type(tree) in (bool, int, str):
            return repr(tree)
        return self.constant(tree)

    def function(self, name: str, parameters: str) -> Any:
        """The function of the lines."""
        text = f"def {name}({parameters}):\n" + "".join([f"    {line}\n" for line in self.lines or ["pass"]])
        namespace = dict(self.constants)
        exec(compile(text, f"{GENERATED}compiled {name}>", "exec"), namespace)
        made = namespace[name]
        made.source = text
        return made

    def items(self, items: Sequence[Item], kept: Iterable[Value]) -> None:
        """Write items; what none of the rest uses is let go, but for what is `kept`."""
        last: dict[int, int] = {}
        for position, item in enumerate(items):
            for value in uses(item):
                last[value.number] = position
        staying = {each.number for each in kept}
        for position, item in enumerate(items):
            self._item(item)
            made = [] if type(item) is not Call else [each.number for each in values_in(item.results)]
            touched = {*made, *[each.number for each in uses(item)]}
            gone = [number for number in touched if last.get(number, position) == position and number not in staying]
            if gone:
                self.lines.append(f"{' = '.join([f'v{number}' for number in sorted(gone)])} = None")

    def _item(self, item: Item) -> None:
        if isinstance(item, Outside):
            function, args, kwargs = (self.constant(each) for each in (item.function, item.args, item.kwargs))
            self.lines.append(f"{function}(*{args}, **{kwargs})")
        elif isinstance(item, Read):
            run, found = self.constant(lowered(item.call)), self.constant(item.call.made)
            text = ", ".join([self.expression(each) for each in item.call.args])
            self.lines.append(f"if {self.constant(differs)}({run}({text}), {found}): return MISS")
        elif isinstance(item, SetGrad):
            tensor = self.tensors[id(item.tensor)]
            if item.value is None:
                self.lines.append(f"{tensor}._grad = None")
            else:
                self.lines.append(f"{tensor}._grad = {self.tensor(item.value, item.kind)}")
        else:
            self._call(item)

    def tensor(self, value: Value, kind: Any) -> str:
        """Source for a new tensor over a value."""
        return f"new((v{value.number}, {self.constant(kind)}, [0, None]))"

    def _call(self, call: Call) -> None:
        run = self.constant(lowered(call))
        text = f"{run}({', '.join([self.expression(each) for each in call.args])})"
        made = call.results
        if type(made) is Value:
            self.lines.append(f"v{made.number} = {text}")
            if not call.made._array.ndim:
                self.lines.append(f"if type(v{made.number}) is not ndarray: v{made.number} = asarray(v{made.number})")
        elif type(made) is list:
            names = [f"v{each.number}" if type(each) is Value else "_" for each in made]
            self.lines.append(f"{', '.join(names)}, = {text}" if names else text)
            for name, each in zip(names, call.made, strict=True):
                if isinstance(each, Tensor) and not each._array.ndim:
                    self.lines.append(f"if type({name}) is not ndarray: {name} = asarray({name})")
        else:
            self.lines.append(text)


def without_dead(items: Sequence[Item], wanted: Iterable[Value]) -> list[Item]:
    """The items without those whose results nobody uses and that do nothing else."""
    used = {each.number for each in wanted}
    kept: list[Item] = []
    for item in reversed(items):
        if type(item) is Call and is_pure(item) and used.isdisjoint([each.number for each in values_in(item.results)]):
            continue
        used.update([each.number for each in uses(item)])
        kept.append(item)
    return kept[::-1]


def is_pure(call: Call) -> bool:
    """Whether a call does nothing but make its results, the same ones from the same arguments."""
    return isinstance(call.op, _PURE) and not call.op.writes and not call.op.draws
