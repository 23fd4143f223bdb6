"""A small program that shows where a compiled function goes wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.dtype import dtype
from ..._core.kind import Kind
from ..._core.process.caller import describe_place
from ..._core.slots import SLOTS
from ..._core.tensor import Tensor
from ..ahead.save import tensor_of
from ..program.items import Call, Value, values_in
from .difference import Difference
from .full_recorder import outcome_of
from .verify import verify

_PROGRAM = '''"""Shows that compiled ops compute something else than the same ops one by one.

Written by flambeau.compiler.minify from {place}
"""

from pathlib import Path

import flambeau as torch
from flambeau.safetensors import load_file

given = load_file(Path(__file__).with_suffix(".safetensors"))
{ops}


def f({parameters}):
{lines}
    return {results}


with torch.no_grad():
    print(torch.compiler.verify(f, {arguments}))
'''


def minify(function: Any, args: tuple[Any, ...], path: str | os.PathLike[str]) -> Path | None:
    """Write a small program to `path`, with its inputs beside it, if compiling a function changes what it computes.

    None: nothing differs. The program has as few of the function's ops as show a difference, and no other code of its.

    Args:
        function: the function.
        args (tuple): its arguments.
        path (str or PathLike): the file to write.

    Returns:
        Path, optional: the path, or None if nothing differs.

    Example:
        >>> torch.compiler.minify(torch.exp, (torch.ones(2),), "small.py") is None
        True
    """
    found = verify(function, *args)
    if found.equal:
        return None
    if found.difference is None:
        raise RuntimeError(f"minify: there is no kernel to blame. {found}")
    path = Path(path)
    least = fewest(found.difference)
    source = _Source(least)
    path.write_text(source.text)
    path.with_suffix(".safetensors").write_bytes(SLOTS.bytes_of_tensors(source.tensors))
    return path


def fewest(difference: Difference) -> Difference:
    """The program with ops left out as long as what is left shows some difference."""
    position = 0
    while position < len(difference.calls):
        fewer = [each for number, each in enumerate(difference.calls) if number != position]
        found = difference.shown(fewer) if fewer else None
        if found is None:
            position += 1
        else:
            difference, position = found, 0
    return difference


class _Source:
    """The text of the program, and its tensors."""

    def __init__(self, difference: Difference) -> None:
        self.tensors: dict[str, Tensor] = {}
        names = []
        for number, array in difference.given.items():
            names.append(f"v{number}")
            self._keep(names[-1], array)
        lines = [self._line(each) for each in difference.calls]
        shown = dict.fromkeys(
            [f"v{value.number}" for call in difference.calls for value in values_in(outcome_of(call))]
        )
        self.text = _PROGRAM.format(
            place=describe_place(difference.call.place),
            parameters=", ".join(names),
            ops="\n".join(
                [
                    f"op_{each} = torch.ops.flambeau.{each}"
                    for each in sorted({each.op.name for each in difference.calls})
                ]
            ),
            lines="\n".join([f"    {each}" for each in lines]),
            results=", ".join(shown),
            arguments=", ".join([f'given["{each}"]' for each in names]),
        )

    def _keep(self, name: str, array: Any) -> None:
        self.tensors[name] = tensor_of(array)

    def _line(self, call: Call) -> str:
        text = f"op_{call.op.name}({', '.join(map(self._argument, call.args))})"
        made = call.results
        if type(made) is Value:
            return f"v{made.number} = {text}"
        if type(made) is list:
            return f"{', '.join([f'v{each.number}' if type(each) is Value else '_' for each in made])}, = {text}"
        return text

    def _argument(self, value: Any) -> str:
        if type(value) is Value:
            return f"v{value.number}"
        if type(value) is list:
            return f"[{', '.join(map(self._argument, value))}]"
        if type(value) is tuple:
            return f"({''.join([f'{self._argument(each)}, ' for each in value])})"
        if type(value) is float:
            return repr(value) if np.isfinite(value) else f'float("{value}")'
        if value is None or type(value) in (bool, int, complex, str, slice):
            return repr(value)
        if isinstance(value, dtype):
            return repr(value)
        if isinstance(value, np.ndarray):
            name = f"k{len(self.tensors)}"
            self._keep(name, value)
            return f'given["{name}"].numpy()'
        if isinstance(value, Kind):
            return f"torch.empty(0, dtype={value.dtype!r})._kind"
        raise RuntimeError(f"minify: {value!r}, an argument of an op, cannot be written in a program")
