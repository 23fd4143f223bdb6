"""What differs between the two libraries' answers to a wrong call, and the list of what is known to differ."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .run import Outcome

KNOWN = Path(__file__).parent / "known.json"

REASONS = {
    "crash": "the interpreter ends",
    "hang": "no answer for a long time, where PyTorch has one",
    "leak": "the message speaks of the array library or of this package's own functions",
    "memory": "a MemoryError of the array library in place of OutOfMemoryError",
    "type": "another type of error",
    "accepts": "a result where PyTorch raises",
    "refuses": "an error where PyTorch has a result",
}
"""The classes of differences."""

_INTERNAL = re.compile(
    r"(?<!from_)numpy|ufunc|ndarray|\bnp\.|_array\b|has no attribute|flambeau\._|dtype\('|array is too big|"
    r"array element|Maximum allowed dimension|operands could not|could not broadcast|casting rule|axes don't match|"
    r"cannot reshape|<lambda>|(?<![\w.])_[a-z]\w*(?<!_)\(\)|data type '|matmul: |boolean index|object arrays",
)
"""What a message must not say, unless PyTorch's says it too."""

Known = dict[str, dict[str, dict[str, list[str]]]]
"""class -> function -> parameter -> kinds of wrong values"""


def difference(key: str, expected: Outcome, actual: Outcome) -> str | None:
    """The class of difference between PyTorch's outcome of a call and ours; None if there is none."""
    if actual[0] in ("crash", "hang"):
        return None if expected[0] == actual[0] else str(actual[0])
    if "unmade" in (actual[0], expected[0]):
        return None
    said = expected[1] if isinstance(expected[0], list) else ""
    if actual[0] == "ok":
        return None if not isinstance(expected[0], list) or _is_unbound(said) else "accepts"
    names, message = actual
    function = key.partition("|")[0]
    message = re.sub(r"(?<![\w.])(_\w+)\(\)", lambda found: "" if found[1] in function else found[0], message)
    if _INTERNAL.search(message) and not _INTERNAL.search(said):
        return "leak"
    if "MemoryError" in names:
        return "memory"
    if _is_unbound(said):
        return None
    if expected[0] == "ok":
        return "refuses"
    if not isinstance(expected[0], list) or expected[0][0] in names:
        return None
    # Where Python code of PyTorch takes the argument for a tensor unseen, it ends with an AttributeError.
    if expected[0][0] == "AttributeError" and "TypeError" in names:
        return None
    return "type"


def _is_unbound(said: str) -> bool:
    """Whether a method was called on something that is no tensor, `Tensor.add(1, tensor)`: here, where a method is the
    function itself, that is a call of the function, which may take a number.
    """
    return said.startswith("descriptor '") and "'torch._C.TensorBase' objects" in said


def differences(expected: dict[str, Outcome], actual: dict[str, Outcome]) -> dict[str, list[str]]:
    """class -> the keys of the calls that differ so."""
    found: dict[str, list[str]] = {}
    for key, outcome in actual.items():
        kind = difference(key, expected[key], outcome) if key in expected else None
        if kind is not None:
            found.setdefault(kind, []).append(key)
    return found


def known() -> Known:
    """The checked-in list, which may only become shorter."""
    return json.loads(KNOWN.read_text())  # type: ignore[no-any-return]


def _place(key: str) -> tuple[str, str, str]:
    """Function, parameter and kind of a call: samples of one function are not told apart."""
    case, parameter, kind = key.split("|")
    return re.sub(r"#\d+$", "", case), parameter, kind


def is_known(listed: Known, kind: str, key: str) -> bool:
    """Whether a difference is on the list."""
    function, parameter, value = _place(key)
    return value in listed.get(kind, {}).get(function, {}).get(parameter, ())


def as_list(found: dict[str, list[str]]) -> Known:
    """The list that these differences make."""
    result: dict[str, dict[str, dict[str, set[str]]]] = {}
    for kind, keys in found.items():
        for key in keys:
            function, parameter, value = _place(key)
            result.setdefault(kind, {}).setdefault(function, {}).setdefault(parameter, set()).add(value)
    return {
        kind: {
            function: {parameter: sorted(values) for parameter, values in sorted(parameters.items())}
            for function, parameters in sorted(functions.items())
        }
        for kind, functions in sorted(result.items())
    }


def write_known(found: dict[str, list[str]]) -> None:
    """The list as it is now."""
    lines = ["{"]
    listed = as_list(found)
    for number, (kind, functions) in enumerate(listed.items()):
        lines.append(f' "{kind}": {{')
        rows = [f"  {json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in functions.items()]
        lines += [f"{row}," for row in rows[:-1]] + rows[-1:]
        lines.append(" }" + ("," if number < len(listed) - 1 else ""))
    KNOWN.write_text("\n".join([*lines, "}"]) + "\n")


def stale(listed: Known, expected: dict[str, Outcome], actual: dict[str, Outcome]) -> list[str]:
    """Entries of the list all of whose calls were run, and none of which differs any more."""
    ran: dict[tuple[str, str, str], set[Any]] = {}
    for key, outcome in actual.items():
        if key in expected:
            ran.setdefault(_place(key), set()).add(difference(key, expected[key], outcome))
    return [
        f"{kind}: {function}, {parameter}, {value}"
        for kind, functions in listed.items()
        for function, parameters in functions.items()
        for parameter, values in parameters.items()
        for value in values
        if (function, parameter, value) in ran and kind not in ran[function, parameter, value]
    ]
