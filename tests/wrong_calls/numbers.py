"""Numbers given in another form: as tensors without dimensions, as NumPy's scalars, as bools, ints and floats.

Every number in the right calls, in lists too, is replaced by the same value in each of these forms; both libraries must
refuse the call, or give the same result.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import torch as pytorch

import flambeau
from tests.conformance.compare import differences

from .valid import Case, groups

KNOWN = Path(__file__).parent / "known_numbers.json"

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "tensor": lambda value, library: library.tensor(value),
    "float tensor": lambda value, library: library.tensor(float(value)),
    "double tensor": lambda value, library: library.tensor(float(value), dtype=library.float64),
    "int tensor": lambda value, library: library.tensor(int(value), dtype=library.int32),
    "byte tensor": lambda value, library: library.tensor(max(int(value), 0), dtype=library.uint8),
    "bool tensor": lambda value, library: library.tensor(bool(value)),
    "tensor with gradient": lambda value, library: library.tensor(float(value), requires_grad=True),
    "tensor of one": lambda value, library: library.tensor([value]),
    "int64": lambda value, library: numpy.int64(int(value)),
    "int8": lambda value, library: numpy.int8(int(value) % 100),
    "float64": lambda value, library: numpy.float64(value),
    "float32": lambda value, library: numpy.float32(value),
    "bool_": lambda value, library: numpy.bool_(value),
    "array": lambda value, library: numpy.array(value),
    "bool": lambda value, library: bool(value),
    "int": lambda value, library: int(value),
    "float": lambda value, library: float(value),
}
"""name -> the value in that form"""

_OWN_ASSERTIONS = ("INTERNAL ASSERT FAILED", "Could this error message be improved?")
"""Of messages of PyTorch that refuse nothing: its own checks fail behind an argument that it took."""

Listed = dict[str, dict[str, list[str]]]
"""function -> argument -> forms"""


def _places(arguments: dict[Any, Any]) -> Iterator[tuple[Any, int | None, Any]]:
    """(argument, place in a list, number) of the finite numbers among the arguments."""
    for parameter, value in arguments.items():
        found = [(None, value)]
        if isinstance(value, (list, tuple)) and value:
            found = [(0, value[0]), (len(value) - 1, value[-1])][: len(value)]
        for place, each in found:
            if type(each) in (bool, int, float) and abs(each) < 1e9:
                yield parameter, place, each


def _outcome(case: Case, library: Any, parameter: Any, place: int | None, form: str) -> tuple[str, Any]:
    try:
        function, args, kwargs = case.make(library)
        given: Any = args if isinstance(parameter, int) else kwargs
        value = given[parameter]
        if place is None:
            given[parameter] = FORMS[form](value, library)
        else:
            changed = list(value)
            changed[place] = FORMS[form](value[place], library)
            given[parameter] = changed if type(value) is list else tuple(changed)
    except Exception:
        return "unmade", None
    library.manual_seed(0)
    try:
        return "ok", function(*args, **kwargs)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _difference(expected: tuple[str, Any], actual: tuple[str, Any]) -> str | None:
    if "unmade" in (expected[0], actual[0]) or (expected[0] == actual[0] == "error"):
        return None
    if actual[0] == "error":
        return f"refuses: {str(actual[1])[:160]}"
    if expected[0] == "error":
        if any(phrase in expected[1] for phrase in _OWN_ASSERTIONS):
            return None
        return f"accepts, where PyTorch says: {str(expected[1])[:160]}"
    if isinstance(expected[1], (pytorch.nn.Module, pytorch.optim.Optimizer)):
        return None
    try:
        first = next(differences(expected[1], actual[1]), None)
    except Exception:
        return None  # of what the comparison does not know
    return None if first is None else f"differs: {first[:160]}"


_UNFILLED = re.compile(r"empty|Tensor$|\bnew$|resize_|\bset_$")
"""Functions whose results may be whatever was in memory."""


def _cases(only: str, every: int) -> Iterator[Case]:
    for group in groups():
        if fnmatch.fnmatch(group.name, only) and zlib.crc32(group.name.encode()) % every == 0:
            yield from group.cases()


def found(only: str = "*", every: int = 1) -> Iterator[tuple[str, str, str, str | None]]:
    """(function, argument, form, what differs or None) of every call."""
    for case in _cases(only, every):
        function = case.name.partition("#")[0]
        try:
            _, args, kwargs = case.make(pytorch)
            case.make(flambeau)
        except Exception:
            continue
        numbers = list(_places({**dict(enumerate(args)), **kwargs}))
        plain = _difference(*[_outcome_of_right(case, library) for library in (pytorch, flambeau)])
        if plain is not None:
            continue  # draws, or is a known gap of the right call
        for parameter, place, _ in numbers:
            word = str(parameter) if place is None else f"{parameter}[]"
            for form in FORMS:
                pair = [_outcome(case, library, parameter, place, form) for library in (pytorch, flambeau)]
                difference = _difference(*pair)
                if difference is not None and difference.startswith("differs") and _UNFILLED.search(function):
                    difference = None
                yield function, word, form, difference


def _outcome_of_right(case: Case, library: Any) -> tuple[str, Any]:
    function, args, kwargs = case.make(library)
    library.manual_seed(0)
    try:
        return "ok", function(*args, **kwargs)
    except Exception as error:
        return "error", str(error)


def known() -> Listed:
    """The checked-in list, which may only become shorter."""
    return json.loads(KNOWN.read_text())  # type: ignore[no-any-return]


def main() -> int:
    """Run all, or what `--only` says; 1 if something is not on the list."""
    parser = argparse.ArgumentParser(prog="python -m tests.wrong_calls.numbers")
    parser.add_argument("--only", default="*", help="a pattern of the names of functions")
    parser.add_argument("--every", type=int, default=1, help="take every so many functions only")
    parser.add_argument("--update", action="store_true", help="write the list")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pytorch.set_num_threads(1)
    listed = {} if options.update else known()
    differing: dict[str, dict[str, set[str]]] = {}
    calls = new = 0
    for function, argument, form, difference in found(options.only, options.every):
        calls += 1
        if difference is not None:
            if form not in listed.get(function, {}).get(argument, ()):
                new += 1
                print(f"{function} | {argument} | {form} | {difference}", flush=True)
            differing.setdefault(function, {}).setdefault(argument, set()).add(form)
    print(f"{calls:,} calls, {new} differ that are not listed")
    if options.update:
        rows = [
            f" {json.dumps(name)}: {json.dumps({key: sorted(forms) for key, forms in sorted(places.items())})}"
            for name, places in sorted(differing.items())
        ]
        KNOWN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        return 0
    return int(new > 0)


if __name__ == "__main__":
    sys.exit(main())
